// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/private_view.hpp"

#include <dirent.h>
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell {

namespace {

[[noreturn]] void fail(const std::string& what, int error, ExitCode code = ExitCode::usage) {
  throw Error(what, reason(error), {}, code);
}

void write_file(const char* path, const std::string& text, int flags = O_WRONLY) {
  const Descriptor fd(open(path, flags | O_CLOEXEC, 0444));
  if (fd.get() < 0 || write(fd.get(), text.data(), text.size()) < 0) fail(path, errno, ExitCode::absent);
}

void enter_namespaces() {
  if (unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM) fail("a mount namespace", errno, ExitCode::absent);
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
      throw Error(
          "a user namespace", reason(errno),
          "a container, a security module, kernel.unprivileged_userns_clone or user.max_user_namespaces may "
          "forbid it; run it as root",
          ExitCode::absent);
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", fmt::format("{} {} 1", user, user));
    write_file("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
  }
  // Nothing that is mounted from now on is seen outside.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail("mounts of this process alone", errno, ExitCode::absent);
}

std::string by_number(const Descriptor& fd, const std::string& name = {}) {
  return fmt::format("/proc/self/fd/{}{}{}", fd.get(), name.empty() ? "" : "/", name);
}

/// Shows what `from` names at `to`, an entry of a new folder.
void show(const std::string& from, const std::string& to, const struct stat& s) {
  if (S_ISLNK(s.st_mode)) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(from, error);
    if (!error) std::filesystem::create_symlink(target, to, error);
    if (error) fail(to, error.value());
    return;
  }
  const bool made =
      S_ISDIR(s.st_mode)
          ? mkdir(to.c_str(), 0755) == 0
          : Descriptor(open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644)).get() >= 0;
  if (!made || mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) fail(to, errno);
}

/// The names in a folder.
std::vector<std::string> entries_of(const Descriptor& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(by_number(folder).c_str()), closedir);
  std::vector<std::string> names;
  if (!dir) return names;
  while (const dirent* e = readdir(dir.get())) {
    const std::string name = e->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

Descriptor open_folder(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) fail(path, errno);
  return fd;
}

/// The path in a new folder, whose own folders are there then.
std::string place_for(const std::string& folder, const std::string& path) {
  const std::filesystem::path place = std::filesystem::path(folder) / path;
  std::error_code error;
  std::filesystem::create_directories(place.parent_path(), error);
  if (error) fail(place.parent_path(), error.value());
  return place;
}

/// A view, with what it shows opened before anything changes.
struct OpenView {
  const FolderView* view;
  Descriptor before;
  std::vector<Descriptor> folders;
};

void build(const OpenView& o) {
  const FolderView& v = *o.view;
  if (mount("tmpfs", v.folder.c_str(), "tmpfs", MS_NOSUID, "mode=755") != 0) fail(v.folder, errno);
  const auto own = [&](const std::string& name) {
    const auto named = [&](const auto& entry) {
      return entry.first.substr(0, entry.first.find('/')) == name;
    };
    return std::ranges::any_of(v.links, named) || std::ranges::any_of(v.folders, named) ||
           std::ranges::any_of(v.files, named);
  };
  for (const std::string& name : entries_of(o.before)) {
    if (own(name) || (!v.hide.empty() && name.starts_with(v.hide))) continue;
    struct stat s {};
    // It may have gone meanwhile.
    if (fstatat(o.before.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    show(by_number(o.before, name), v.folder + "/" + name, s);
  }
  for (std::size_t i = 0; i < v.folders.size(); ++i) {
    struct stat s {};
    s.st_mode = S_IFDIR;
    show(by_number(o.folders[i]), v.folder + "/" + v.folders[i].first, s);
  }
  for (const auto& [path, text] : v.files)
    write_file(place_for(v.folder, path).c_str(), text, O_WRONLY | O_CREAT | O_EXCL);
  for (const auto& [path, target] : v.links) {
    const std::string place = place_for(v.folder, path);
    if (symlink(target.c_str(), place.c_str()) != 0) fail(place, errno);
  }
}

}  // namespace

void enter_private_view(std::span<const FolderView> views) {
  enter_namespaces();
  std::vector<OpenView> open;
  for (const FolderView& v : views) {
    OpenView& o = open.emplace_back(OpenView{&v, open_folder(v.folder), {}});
    for (const auto& [name, folder] : v.folders) o.folders.push_back(open_folder(folder));
  }
  for (const OpenView& o : open) build(o);
}

}  // namespace doorbell
