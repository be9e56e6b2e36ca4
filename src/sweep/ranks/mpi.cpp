// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/mpi.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exchange/socket.hpp"
#include "system/descriptor.hpp"
#include "system/library.hpp"
#include "system/sysfs.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOverride = "DOORBELL_LIBMPI";
constexpr std::array kOpenMpi = {"libmpi.so.40", "libmpi.so"};
constexpr std::array kMpich = {"libmpich.so.12", "libmpi.so.12", "libmpich.so", "libmpi.so"};
constexpr const char* kInstall = "install the MPI whose launcher this is (Debian: libopenmpi3 or libmpich12)";

/// The handles of MPICH's binary interface, which Intel MPI, MVAPICH and Cray MPI share.
constexpr int kMpichWorld = 0x44000000;
constexpr int kMpichByte = 0x4c00010d;

/// Handle: a pointer in Open MPI, a number in MPICH.
template <class Handle>
std::vector<std::string> gather(const Library& mpi, Handle world, Handle byte, const Launcher& launcher,
                                const std::string& mine) {
  int (*const init)(int*, char***) = mpi.need("MPI_Init");
  int (*const rank_of)(Handle, int*) = mpi.need("MPI_Comm_rank");
  int (*const size_of)(Handle, int*) = mpi.need("MPI_Comm_size");
  int (*const all_gather)(const void*, int, Handle, void*, int, Handle, Handle) = mpi.need("MPI_Allgather");
  int (*const finalize)() = mpi.need("MPI_Finalize");
  const auto check = [&](const char* call, int code) {
    if (code != 0) throw Error(fmt::format("{}: {}", mpi.name(), call), fmt::format("error {}", code));
  };
  check("MPI_Init", init(nullptr, nullptr));
  int rank = -1, size = -1;
  check("MPI_Comm_rank", rank_of(world, &rank));
  check("MPI_Comm_size", size_of(world, &size));
  if (rank != static_cast<int>(launcher.rank) || size != static_cast<int>(launcher.size)) {
    (void)finalize();
    throw Error(
        fmt::format("{} cannot be used", mpi.name()),
        fmt::format("{} has started rank {} of {}, and to this library it is rank {} of {}: it belongs to "
                    "another launcher",
                    launcher.name, launcher.rank, launcher.size, rank, size),
        fmt::format("set {} to the library of that launcher", kOverride));
  }
  std::vector<char> own(kMaxWord, '\0'), all(kMaxWord * launcher.size);
  std::ranges::copy(mine, own.begin());
  const int bytes = static_cast<int>(kMaxWord);
  check("MPI_Allgather", all_gather(own.data(), bytes, byte, all.data(), bytes, byte, world));
  check("MPI_Finalize", finalize());
  std::vector<std::string> words;
  for (u32 r = 0; r < launcher.size; ++r) {
    const char* begin = all.data() + r * kMaxWord;
    words.emplace_back(begin, strnlen(begin, kMaxWord));
  }
  return words;
}

std::string version_of(const Library& mpi) {
  int (*const version)(char*, int*) = mpi.find("MPI_Get_library_version");
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, 8192 in MPICH
  int length = 0;
  if (version == nullptr || version(text.data(), &length) != 0) return "";
  return {text.data(), strnlen(text.data(), text.size())};
}

std::vector<std::string> gather_by(const Library& mpi, const Launcher& launcher, const std::string& mine) {
  // Open MPI's handles are the addresses of objects in the library, MPICH's are numbers.
  const auto object = [&](const char* name) {
    void (*const address)() = mpi.need(name);
    return reinterpret_cast<void*>(address);
  };
  void (*const world)() = mpi.find("ompi_mpi_comm_world");
  if (world != nullptr)
    return gather<void*>(mpi, reinterpret_cast<void*>(world), object("ompi_mpi_byte"), launcher, mine);
  const std::string version = version_of(mpi);
  for (const char* kind : {"MPICH", "Intel", "MVAPICH", "CRAY MPICH"})
    if (version.find(kind) != std::string::npos)
      return gather<int>(mpi, kMpichWorld, kMpichByte, launcher, mine);
  throw Error(fmt::format("{} cannot be used", mpi.name()),
              version.empty()
                  ? "it does not say which MPI it is"
                  : fmt::format("it is '{}', whose binary interface is neither Open MPI's nor MPICH's",
                                version.substr(0, version.find('\n'))),
              "use Open MPI or MPICH, or one that is compatible with MPICH");
}

/// In the child: writes the outcome as JSON.
void answer(int fd, const Launcher& launcher, const std::string& mine) {
  Json out;
  try {
    const bool open_mpi = launcher.name == "Open MPI";
    const Library mpi(
        kOverride, open_mpi ? std::span<const char* const>(kOpenMpi) : std::span<const char* const>(kMpich),
        kInstall);
    out["words"] = gather_by(mpi, launcher, mine);
  } catch (const Error& e) {
    const std::string whole = e.what();
    out = {{"what", e.subject()},
           {"why", whole.substr(e.subject().size() + 2)},
           {"hint", e.hint()},
           {"code", static_cast<int>(e.code())}};
  }
  const std::string text = out.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

/// Everything until the other end closes; "" with a reason in `why`.
std::string read_all(int fd, const exchange::Wait& wait, std::string* why) {
  std::string text;
  char part[4096];
  for (;;) {
    switch (exchange::wait_for(fd, POLLIN, wait)) {
      case exchange::Waited::expired:
        *why = "not every rank has come in time";
        return "";
      case exchange::Waited::stopped:
        *why = "interrupted";
        return "";
      case exchange::Waited::ready:
        break;
    }
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part, static_cast<std::size_t>(n));
  }
}

}  // namespace

std::vector<std::string> exchange_words(const Launcher& launcher, const std::string& mine, double limit_s,
                                        const measure::StopFlag* stop) {
  const std::string what = fmt::format("MPI of rank {}", launcher.rank);
  if (mine.size() >= kMaxWord) throw Error(what, fmt::format("{} bytes are too many", mine.size()));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(what, reason(errno));
  Descriptor out(ends[0]), in(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw Error(what, reason(errno));
  if (child == 0) {
    // It must not outlive a parent that is killed.
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) answer(in.get(), launcher, mine);
    ::_exit(0);
  }
  in.reset();
  std::string why;
  const std::string text = read_all(out.get(), exchange::Wait::lasting(limit_s, stop), &why);
  if (!why.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!why.empty())
    throw Error(what, why, "is the program on every host, and the network between them open?");
  const Json found = Json::parse(text, nullptr, false);
  if (!found.is_object())
    throw Error(what,
                WIFSIGNALED(status) ? fmt::format("it has crashed by signal {}", WTERMSIG(status))
                                    : "it has ended the process",
                "what it printed says why");
  if (found.contains("why"))
    throw Error(found.value("what", what), found.value("why", ""), found.value("hint", ""),
                static_cast<ExitCode>(found.value("code", 1)));
  return found.at("words").get<std::vector<std::string>>();
}

}  // namespace doorbell::sweep
