// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reading files of recorded vectors. A vector, key or kind that a program does not know is a failure: a
// vector that is skipped proves nothing.
#pragma once

#include <doorbell/config.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace doorbell::golden {

using json = nlohmann::ordered_json;
using Bytes = std::vector<u8>;

inline u64 number(const json& v) {
  if (v.is_string()) return std::stoull(v.get<std::string>(), nullptr, 0);
  return v.get<u64>();
}

inline Bytes from_hex(const std::string& hex) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<u8>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

inline std::string to_hex(const Bytes& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const u8 b : bytes) {
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

template <class T>
Bytes bytes_of(const T& entry) {
  Bytes out(sizeof entry);
  std::memcpy(out.data(), &entry, sizeof entry);
  return out;
}

/// Reads keys and knows afterwards which ones were never asked for.
class Keys {
 public:
  explicit Keys(const json& object) : object_(object) {}
  bool has(const std::string& key) {
    seen_.insert(key);
    return object_.contains(key);
  }
  u64 operator()(const std::string& key) {
    seen_.insert(key);
    return number(object_.at(key));
  }
  std::string text(const std::string& key) {
    seen_.insert(key);
    return object_.at(key).get<std::string>();
  }
  const json& raw(const std::string& key) {
    seen_.insert(key);
    return object_.at(key);
  }
  void expect_all_used(const std::string& where) const {
    for (const auto& [key, value] : object_.items())
      EXPECT_TRUE(seen_.contains(key)) << where << ": the test does not know the key " << key;
  }

 private:
  const json& object_;
  std::set<std::string> seen_;
};

/// Equal outside the ranges that the vector excludes from the comparison.
inline void expect_bytes(const Bytes& got, const json& vector, const std::string& what) {
  Bytes want = from_hex(vector.at("bytes_hex").get<std::string>());
  ASSERT_EQ(got.size(), want.size()) << what;
  if (vector.contains("dont_care"))
    for (const json& range : vector.at("dont_care"))
      for (u64 i = 0; i < range.at(1).get<u64>(); ++i)
        want.at(range.at(0).get<u64>() + i) = got.at(range.at(0).get<u64>() + i);
  EXPECT_EQ(to_hex(got), to_hex(want)) << what;
}

using Kinds = std::map<std::string, std::function<void(const json&)>>;

/// Every vector by its kind. Returns how many there were.
inline u64 run_vectors(const json& vectors, const Kinds& kinds) {
  const std::set<std::string> known = {"name", "kind", "inputs", "bytes_hex", "expect", "dont_care"};
  std::set<std::string> names;
  u64 run = 0;
  for (const json& vector : vectors) {
    const std::string name = vector.at("name").get<std::string>();
    SCOPED_TRACE(name);
    EXPECT_TRUE(names.insert(name).second) << "the name is there twice";
    for (const auto& [key, value] : vector.items()) EXPECT_TRUE(known.contains(key)) << "unknown key " << key;
    const auto kind = kinds.find(vector.at("kind").get<std::string>());
    if (kind == kinds.end()) {
      ADD_FAILURE() << "unknown kind " << vector.at("kind");
      continue;
    }
    try {
      kind->second(vector);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    ++run;
  }
  return run;
}

/// FORMAT.json, or null.
inline json read_file(const std::string& format) {
  const char* other = std::getenv("DOORBELL_GOLDEN_DIR");
  const std::string path =
      std::string(other != nullptr ? other : DOORBELL_GOLDEN_DIR) + "/" + format + ".json";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return file ? json::parse(file) : json();
}

/// Every vector of FORMAT.json by its kind; their number must be the one that the file declares.
inline void run_file(const std::string& format, const Kinds& kinds) {
  const json document = read_file(format);
  ASSERT_TRUE(document.is_object());
  ASSERT_EQ(document.at("schema"), 1);
  ASSERT_EQ(document.at("format"), format);
  const u64 run = run_vectors(document.at("vectors"), kinds);
  EXPECT_EQ(run, document.at("vector_count").get<u64>());
  EXPECT_GT(run, 0u);
}

}  // namespace doorbell::golden
