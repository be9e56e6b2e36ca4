// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/roles.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "options/enumeration.hpp"
#include "options/suggest.hpp"
#include "system/open_file.hpp"

namespace doorbell::qdma::daemon {

namespace {

constexpr std::pair<std::string_view, Right> kRightNames[] = {
    {"query-devices", kQueryDevices},
    {"bar-access", kBarAccess},
    {"qdma", kQdma},
    {"buffer", kBuffer},
    {"design-write", kDesignWrite},
    {"cfgmem-program", kCfgmemProgram},
    {"clock", kClock},
    {"pcie-hotplug", kPcieHotplug},
    {"raw-mem-access", kRawMemAccess},
};

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The words of "a, b c".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  constexpr std::string_view kBetween = ", \t";
  for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<u32> number_of(const std::string& text) {
  u32 number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return {};
  return number;
}

/// A user database entry by name, however long it is.
template <class Entry, class Get>
std::optional<Entry> entry_of(const std::string& name, Get get) {
  std::vector<char> space(4096);
  for (;;) {
    Entry entry{};
    Entry* found = nullptr;
    const int rc = get(name.c_str(), &entry, space.data(), space.size(), &found);
    if (rc == ERANGE && space.size() < (1u << 20)) {
      space.resize(space.size() * 2);
      continue;
    }
    if (rc != 0 || found == nullptr) return {};
    return entry;
  }
}

/// A section "[kind:who]" and the line where it begins.
struct RoleSection {
  std::string kind, who;
  u32 line = 0;
  std::vector<std::pair<std::string, u32>> values;  ///< words of its one key, with their lines
};

class RoleParser {
 public:
  RoleParser(const std::string& file, std::string_view text) : file_(file) {
    u32 line = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      take_line(trimmed(text.substr(0, end)), ++line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  [[nodiscard]] const std::vector<RoleSection>& sections() const { return sections_; }
  [[noreturn]] void refuse(u32 line, const std::string& why, const std::string& hint = {}) const {
    throw Error(fmt::format("{}:{}", file_, line), why, hint);
  }

 private:
  void take_line(std::string_view text, u32 line) {
    if (text.empty() || text[0] == '#' || text[0] == ';') return;
    if (text[0] == '[') return begin_section(text, line);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      refuse(line, fmt::format("'{}' is neither [SECTION] nor KEY = VALUE", text));
    if (sections_.empty()) refuse(line, "a key before the first [SECTION]");
    RoleSection& section = sections_.back();
    const std::string_view key = trimmed(text.substr(0, equals));
    const std::string_view wanted = section.kind == "role" ? "rights" : "roles";
    if (key != wanted)
      refuse(line, fmt::format("unknown key '{}' in [{}:{}]", key, section.kind, section.who),
             fmt::format("the only key there is '{}'", wanted));
    for (std::string& word : words_of(text.substr(equals + 1)))
      section.values.emplace_back(std::move(word), line);
  }
  void begin_section(std::string_view text, u32 line) {
    const auto colon = text.find(':');
    if (text.back() != ']' || colon == std::string_view::npos)
      refuse(line, fmt::format("'{}' is no section", text), "write [role:NAME], [user:NAME] or [group:NAME]");
    RoleSection section{std::string(trimmed(text.substr(1, colon - 1))),
                        std::string(trimmed(text.substr(colon + 1, text.size() - colon - 2))),
                        line,
                        {}};
    if (section.kind != "role" && section.kind != "user" && section.kind != "group")
      refuse(line, fmt::format("unknown section '{}'", section.kind), "sections are role, user and group");
    if (section.who.empty()) refuse(line, fmt::format("'{}' has no name", text));
    for (const RoleSection& other : sections_)
      if (other.kind == section.kind && other.who == section.who)
        refuse(line, fmt::format("{} stands in line {} already", text, other.line));
    sections_.push_back(std::move(section));
  }
  std::string file_;
  std::vector<RoleSection> sections_;
};

u32 rights_of_role(const RoleParser& parser, const RoleSection& section) {
  u32 rights = 0;
  for (const auto& [word, line] : section.values) {
    const auto* const known =
        std::ranges::find(kRightNames, std::string_view(word), &std::pair<std::string_view, Right>::first);
    if (known == std::end(kRightNames)) {
      std::vector<std::string> all;
      for (const auto& [right, bit] : kRightNames) all.emplace_back(right);
      parser.refuse(line, fmt::format("unknown right '{}'", word),
                    "rights are " + options::enumeration(all, "and"));
    }
    rights |= known->second;
  }
  return rights;
}

}  // namespace

std::string rights_text(u32 rights) {
  std::string text;
  for (const auto& [right, bit] : kRightNames)
    if ((rights & bit) != 0) (text += text.empty() ? "" : ", ") += right;
  return text.empty() ? "none" : text;
}

NameService NameService::system() {
  return {.user = [](const std::string& name) -> std::optional<uid_t> {
            const auto entry = entry_of<passwd>(name, ::getpwnam_r);
            return entry ? std::optional(entry->pw_uid) : std::nullopt;
          },
          .group = [](const std::string& name) -> std::optional<gid_t> {
            const auto entry = entry_of<::group>(name, ::getgrnam_r);
            return entry ? std::optional(entry->gr_gid) : std::nullopt;
          }};
}

Roles Roles::defaults(uid_t own) {
  Roles roles;
  roles.everyone_ = kQueryDevices | kBuffer;
  roles.users_[0] = kAllRights;
  roles.users_[own] = kAllRights;
  return roles;
}

Roles Roles::parse(const std::string& file, std::string_view text, const NameService& names) {
  const RoleParser parser(file, text);
  std::map<std::string, u32> rights;
  for (const RoleSection& section : parser.sections())
    if (section.kind == "role") rights[section.who] = rights_of_role(parser, section);

  Roles roles;
  for (const RoleSection& section : parser.sections()) {
    if (section.kind == "role") continue;
    u32 granted = 0;
    for (const auto& [word, line] : section.values) {
      const auto role = rights.find(word);
      if (role == rights.end())
        parser.refuse(line, fmt::format("no section [role:{}]", word),
                      "a role may stand before or after its users");
      granted |= role->second;
    }
    const bool user = section.kind == "user";
    if (user && section.who == "*") {
      roles.everyone_ |= granted;
      continue;
    }
    const std::optional<u32> id = number_of(section.who) ? number_of(section.who)
                                  : user                 ? names.user(section.who)
                                                         : names.group(section.who);
    if (!id) {
      roles.warnings_.push_back(fmt::format("{}:{}: this system knows no {} '{}'; no client gets its roles",
                                            file, section.line, section.kind, section.who));
      continue;
    }
    if (user) roles.users_[*id] |= granted;
    else roles.groups_[*id] |= granted;
  }
  const auto nothing = [](const auto& each) { return each.second == 0; };
  if (roles.everyone_ == 0 && std::ranges::all_of(roles.users_, nothing) &&
      std::ranges::all_of(roles.groups_, nothing))
    roles.warnings_.push_back(file + ": gives nobody a right, so every request is refused, root's too");
  return roles;
}

Roles Roles::read(const std::string& file, const NameService& names) {
  const Opened opened = open_file(file, O_RDONLY, FileKinds::regular);
  if (!opened) throw Error(file, opened.why);
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(opened.fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(file, "cannot be read");
    if (n == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
    if (text.size() > (1u << 20)) throw Error(file, "is longer than 1 MiB");
  }
  return parse(file, text, names);
}

u32 Roles::rights(const Peer& peer) const {
  u32 rights = everyone_;
  if (const auto user = users_.find(peer.uid); user != users_.end()) rights |= user->second;
  for (const gid_t id : peer.groups)
    if (const auto group = groups_.find(id); group != groups_.end()) rights |= group->second;
  return rights;
}

}  // namespace doorbell::qdma::daemon
