// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/namespaces.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <thread>

#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::net {

namespace {

/// Runs `f` on a thread of its own and passes on what it throws.
void on_own_thread(const std::function<void()>& f) {
  std::exception_ptr thrown;
  make_thread("network namespace", [&] {
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

Descriptor own_namespace() {
  return Descriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

/// CAP_NET_ADMIN for interfaces and addresses, CAP_SYS_ADMIN for namespaces.
bool has_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  const u64 effective = static_cast<u64>(data[1].effective) << 32 | data[0].effective;
  const u64 needed = u64{1} << CAP_NET_ADMIN | u64{1} << CAP_SYS_ADMIN;
  return (effective & needed) == needed;
}

/// 0 or an errno. Makes system calls alone, so that the child of a process with threads may call it.
int write_text(const char* path, const char* text, std::size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::write(fd, text, size) == static_cast<ssize_t>(size) ? 0 : errno;
  ::close(fd);
  return error;
}

/// "1000 1000 1": the one user, or group, that an ordinary user may map is himself.
std::string map_of(u32 id) {
  return fmt::format("{0} {0} 1", id);
}

/// The outcome of entering a user namespace: the step that failed, and its errno. System calls alone.
struct Entered {
  int step = 0;  ///< 0: it worked
  int error = 0;
};
constexpr const char* kSteps[] = {"",
                                  "a user namespace",
                                  "/proc/self/setgroups",
                                  "/proc/self/uid_map",
                                  "/proc/self/gid_map",
                                  "a network namespace"};

Entered enter(const std::string& uids, const std::string& gids) {
  if (unshare(CLONE_NEWUSER) != 0) return {1, errno};
  // Kernels before 3.19 have no such file and need none.
  if (const int e = write_text("/proc/self/setgroups", "deny", 4); e != 0 && e != ENOENT) return {2, e};
  if (const int e = write_text("/proc/self/uid_map", uids.c_str(), uids.size()); e != 0) return {3, e};
  if (const int e = write_text("/proc/self/gid_map", gids.c_str(), gids.size()); e != 0) return {4, e};
  return {};
}

/// The same, and a network namespace inside, in a child that ends at once.
Entered try_entering() {
  const std::string uids = map_of(geteuid()), gids = map_of(getegid());
  const pid_t child = fork();
  if (child < 0) return {1, errno};
  if (child == 0) {
    Entered e = enter(uids, gids);
    // Where AppArmor restricts user namespaces, they are given, but without capabilities.
    if (e.step == 0 && unshare(CLONE_NEWNET) != 0) e = {5, errno};
    // Errors of these calls fit beside the step into an exit code.
    _exit(e.step == 0 ? 0 : e.step << 5 | (e.error & 31));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {1, errno};
  if (!WIFEXITED(status)) return {1, ECHILD};
  const int code = WEXITSTATUS(status);
  return {code >> 5, code & 31};
}

/// The setting of this machine that most likely refused.
std::string refused_by() {
  if (read_number("/proc/sys/kernel/unprivileged_userns_clone").value_or(1) == 0)
    return "kernel.unprivileged_userns_clone is 0 on this machine; set it to 1, or run as root";
  if (read_number("/proc/sys/user/max_user_namespaces").value_or(1) == 0)
    return "user.max_user_namespaces is 0 on this machine; raise it, or run as root";
  if (read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").value_or(0) != 0)
    return "AppArmor restricts user namespaces on this machine "
           "(kernel.apparmor_restrict_unprivileged_userns is 1); set it to 0, or run as root";
  return "a container or a security module may forbid it; run as root, or give it CAP_SYS_ADMIN and CAP_NET_ADMIN";
}

std::string file_of(const std::string& name) {
  return fmt::format("{}/{}", kNamespaceFolder, name);
}

/// Mounts below the folder must be seen by every mount namespace, as `ip netns` arranges it.
void prepare_folder() {
  if (mkdir(kNamespaceFolder, 0755) != 0 && errno != EEXIST)
    throw Error(kNamespaceFolder, reason(errno), errno == EACCES ? "named network namespaces need root" : "");
  if (mount("", kNamespaceFolder, "none", MS_SHARED | MS_REC, nullptr) == 0) return;
  if (errno != EINVAL)
    throw Error(kNamespaceFolder, "cannot be shared among mount namespaces: " + reason(errno),
                "named network namespaces need root");
  // It is no mount point yet.
  if (mount(kNamespaceFolder, kNamespaceFolder, "none", MS_BIND | MS_REC, nullptr) != 0 ||
      mount("", kNamespaceFolder, "none", MS_SHARED | MS_REC, nullptr) != 0)
    throw Error(kNamespaceFolder, "cannot be made a mount point: " + reason(errno));
}

}  // namespace

Namespace::Namespace(Descriptor fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {
  struct stat s;
  if (fstat(fd_.get(), &s) != 0) throw Error("network namespace", reason(errno));
  id_ = s.st_ino;
}

Namespace Namespace::current() {
  Descriptor fd = own_namespace();
  if (fd.get() < 0)
    throw Error("network namespace", "/proc/thread-self/ns/net: " + reason(errno), "is /proc mounted?");
  return {std::move(fd), ""};
}

Namespace Namespace::create() {
  Descriptor made;
  on_own_thread([&] {
    const int error = unshare(CLONE_NEWNET) == 0 ? 0 : errno;
    if (error != 0)
      throw Error("network namespace", "the kernel makes none: " + reason(error),
                  error == EPERM ? refused_by() : "");
    made = own_namespace();
  });
  if (made.get() < 0)
    throw Error("network namespace", "/proc/thread-self/ns/net cannot be opened", "is /proc mounted?");
  std::string name = fmt::format("/proc/{}/fd/{}", getpid(), made.get());
  return {std::move(made), std::move(name)};
}

Namespace Namespace::open(const std::string& name) {
  check_namespace_name(name);
  const std::string subject = fmt::format("network namespace '{}'", name);
  Descriptor fd(::open(file_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0)
    throw Error(subject, errno == ENOENT ? "there is none of this name" : reason(errno),
                fmt::format("`ip netns` lists them, and so does {}", kNamespaceFolder));
  struct statfs fs;
  // The file that a namespace was mounted on, left by a program that ended in between, or of another mount
  // namespace.
  if (fstatfs(fd.get(), &fs) != 0 || static_cast<u64>(fs.f_type) != NSFS_MAGIC)
    throw Error(subject, file_of(name) + " is an empty name, with no namespace behind it",
                fmt::format("remove it: rm {}", file_of(name)));
  return {std::move(fd), name};
}

void Namespace::run(const std::function<void()>& f) const {
  if (same(current())) return f();
  on_own_thread([&] {
    if (setns(fd_.get(), CLONE_NEWNET) != 0)
      throw Error("network namespace " + name_, "cannot be entered: " + reason(errno),
                  errno == EPERM ? "run as root" : "");
    f();
  });
}

BackendStatus namespaces_status() {
  if (has_capabilities()) return {true, "network namespaces of its own"};
  const Entered e = try_entering();
  if (e.step == 0) return {true, "network namespaces inside a user namespace of its own"};
  return {false, fmt::format("{}: {}; {}", kSteps[e.step], reason(e.error), refused_by())};
}

void enter_user_namespace_if_needed() {
  if (has_capabilities()) return;
  if (names_in("/proc/self/task").size() > 1)
    throw Error("user namespace", "this process has several threads already, and the kernel then refuses",
                "run as root, or give the program CAP_SYS_ADMIN and CAP_NET_ADMIN");
  // In a child first: half of the way there is no way back.
  Entered e = try_entering();
  if (e.step == 0) e = enter(map_of(geteuid()), map_of(getegid()));
  if (e.step == 0) return;
  throw Error("user namespace", fmt::format("the kernel refuses {}: {}", kSteps[e.step], reason(e.error)),
              refused_by());
}

void check_namespace_name(const std::string& name) {
  bool good = !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-';
  for (const char c : name)
    good = good && (isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.');
  if (!good)
    throw Error(fmt::format("network namespace '{}'", name), "it is no name for a namespace",
                "give 1..64 letters, digits, '_', '-' and '.', with none of the last two in front");
}

bool namespace_exists(const std::string& name) {
  return present(file_of(name));
}

void make_named_namespace(const std::string& name) {
  check_namespace_name(name);
  const std::string subject = fmt::format("network namespace '{}'", name);
  prepare_folder();
  const std::string file = file_of(name);
  Descriptor place(::open(file.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
  if (place.get() < 0)
    throw Error(subject, errno == EEXIST ? "the name is taken" : reason(errno),
                errno == EEXIST ? fmt::format("choose another, or remove it: ip netns del {}", name) : "");
  try {
    on_own_thread([&] {
      if (unshare(CLONE_NEWNET) != 0)
        throw Error(subject, "the kernel makes none: " + reason(errno), "run as root");
      if (mount("/proc/thread-self/ns/net", file.c_str(), "none", MS_BIND, nullptr) != 0)
        throw Error(subject, fmt::format("cannot be mounted at {}: {}", file, reason(errno)), "run as root");
    });
  } catch (...) {
    unlink(file.c_str());
    throw;
  }
}

bool remove_named_namespace(const std::string& name) {
  check_namespace_name(name);
  const std::string file = file_of(name);
  // Also an empty name, which nothing is mounted on.
  static_cast<void>(umount2(file.c_str(), MNT_DETACH));
  if (unlink(file.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  throw Error(fmt::format("network namespace '{}'", name), "its name cannot be removed: " + reason(errno),
              errno == EACCES || errno == EPERM ? "run as root" : "");
}

}  // namespace doorbell::net
