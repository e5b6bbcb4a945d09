// SPDX-License-Identifier: Apache-2.0
#include "inline/vdso_load.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "code/decode.h"
#include "target/address_space.h"
#include "target/odd_mappings.h"

namespace clew::inline_ {
namespace {

constexpr std::array<uint8_t, 3> kEnclu = {0x0F, 0x01, 0xD7};
constexpr size_t kSweepMax = 512;  // Bytes of the function behind the ENCLU; it has some 120.

Error not_here(std::string reason) {
  return {ErrorCode::NotFound, std::move(reason)};
}

// `mov %di, disp(%reg)`: how the landing keeps the trap's number (struct sgx_enclave_run).
bool stores_trap_number(std::span<const uint8_t> code) {
  constexpr uint8_t kOperandSize = 0x66;
  constexpr uint8_t kStore = 0x89;
  constexpr uint8_t kDi = 7;
  return code.size() > 2 && code[0] == kOperandSize && code[1] == kStore &&
         (code[2] >> 3 & 7) == kDi && code[2] < 0xC0;
}

bool ends_straight_line(code::Flow flow) {
  return flow == code::Flow::Jump || flow == code::Flow::Return || flow == code::Flow::Int3 ||
         flow == code::Flow::Nop;
}

// Where the straight line begins that keeps the trap's number: only the kernel leads there.
std::optional<uint64_t> find_landing(std::span<const uint8_t> vdso, uint64_t from) {
  const uint64_t end = std::min<uint64_t>(vdso.size(), from + kSweepMax);
  uint64_t line = from;
  for (uint64_t at = from; at < end;) {
    const auto rest = vdso.subspan(at, end - at);
    const auto decoded = code::decode(rest);
    if (!decoded) return std::nullopt;
    if (stores_trap_number(rest)) return line;
    at += decoded->length;
    if (ends_straight_line(decoded->flow)) line = at;
  }
  return std::nullopt;
}

const std::vector<uint8_t>& own_vdso() {
  static const std::vector<uint8_t> kBytes = target::read_vdso();
  return kBytes;
}

// --- trying them --------------------------------------------------------------------------------

struct Tried {
  uint64_t value = 0;
  bool has_failed = false;
};

Tried load_at(uint64_t place, const void* address) {
  Tried tried;
  uint64_t rdi = reinterpret_cast<uint64_t>(address);
  asm volatile(
      "sub $128, %%rsp\n"  // The compiler does not see the call: no data below rsp.
      "call *%[place]\n"
      "setc %[failed]\n"
      "lea 128(%%rsp), %%rsp\n"
      : "=a"(tried.value), [failed] "=&r"(tried.has_failed), "+D"(rdi)
      : [place] "r"(place)
      : "rsi", "rdx", "cc", "memory");
  return tried;
}

bool write_own(int memory, uint64_t address, std::span<const uint8_t> bytes) {
  return pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
         static_cast<ssize_t>(bytes.size());
}

// In a child, which has its own copy of the vDSO: it ends by a signal where this is no place of the
// table.
[[noreturn]] void try_in_child(const LoadPlaces& places) {
  constexpr rlimit kNoCore{1, 1};  // Programs that take cores from a pipe ignore 0 (core(5)).
  (void)setrlimit(RLIMIT_CORE, &kNoCore);
  (void)prctl(PR_SET_DUMPABLE, 1);  // Else /proc/self/mem is root's.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL})
    (void)std::signal(signal, SIG_DFL);
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (!write_own(memory, places.landing, kLandingCode) ||
      !write_own(memory, places.load, kLoadCode))
    _exit(1);
  constexpr uint64_t kNotCanonical = uint64_t{1} << 63;
  constexpr uint64_t kWord = 0x1122'3344'5566'7788;
  const volatile uint64_t there = kWord;
  void* const closed = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Tried good = load_at(places.load, const_cast<const uint64_t*>(&there));
  bool is_right = closed != MAP_FAILED && !good.has_failed && good.value == kWord;
  for (const void* address :
       {static_cast<const void*>(nullptr), reinterpret_cast<const void*>(kNotCanonical),
        reinterpret_cast<const void*>(~uint64_t{7}), static_cast<const void*>(closed)})
    is_right = is_right && load_at(places.load, address).has_failed;
  _exit(is_right ? 0 : 1);
}

bool works(const LoadPlaces& places) {
  const pid_t child = fork();
  if (child == 0) try_in_child(places);
  if (child < 0) return false;
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &status, __WALL);
  } while (ended < 0 && errno == EINTR);
  // Where children are not waited for (SIGCHLD is ignored) nobody says how it ended.
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// By the kernel's list of devices, which is the same in all containers. A line: NUMBER NAME.
bool has_enclaves() {
  std::ifstream devices("/proc/misc");
  for (std::string line; std::getline(devices, line);) {
    if (line.ends_with(" sgx_enclave")) return true;
  }
  return false;
}

Expected<LoadPlaces> find_here() {
  const char* const none = getenv("CLEW_NO_FAULT_FREE_LOAD");  // NOLINT(concurrency-mt-unsafe)
  if (none != nullptr && std::strcmp(none, "1") == 0) {
    return tl::unexpected(not_here("CLEW_NO_FAULT_FREE_LOAD is set"));
  }
  if (has_enclaves()) return tl::unexpected(not_here("this machine has enclaves (SGX)"));
  const LoadPlaces places = CLEW_TRY(find_load_places(own_vdso()));
  const uint64_t base = getauxval(AT_SYSINFO_EHDR);
  if (works({.load = base + places.load, .landing = base + places.landing})) return places;
  return tl::unexpected(not_here("the vDSO's exception table does not serve it"));
}

// --- of a process -------------------------------------------------------------------------------

const target::Mapping* vdso_of(std::span<const target::Mapping> maps) {
  const auto vdso = std::find_if(maps.begin(), maps.end(),
                                 [](const target::Mapping& map) { return map.path == "[vdso]"; });
  return vdso == maps.end() ? nullptr : &*vdso;
}

struct Part {
  uint64_t address;  // Of the process.
  std::span<const uint8_t> original;
  std::span<const uint8_t> ours;
};

// The landing first, which a load goes to.
std::array<Part, 2> parts_of(const abi::LoadRecord& record) {
  const auto landing = std::span(record.landing_original).first(kLandingCode.size());
  const auto load = std::span(record.load_original).first(kLoadCode.size());
  return {Part{record.landing, landing, kLandingCode}, Part{record.load, load, kLoadCode}};
}

// Whether the process has these bytes there, now.
bool has(const StoppedTarget& target, uint64_t address, std::span<const uint8_t> bytes) {
  std::array<uint8_t, kLoadCode.size()> now{};
  const auto there = std::span(now).first(bytes.size());
  return target.read(address, there) && std::equal(bytes.begin(), bytes.end(), there.begin());
}

abi::LoadRecord record_of(uint64_t vdso, const LoadPlaces& places) {
  abi::LoadRecord record{};
  record.load = vdso + places.load;
  record.landing = vdso + places.landing;
  const uint8_t* const own = own_vdso().data();
  std::copy_n(own + places.load, kLoadCode.size(), record.load_original);
  std::copy_n(own + places.landing, kLandingCode.size(), record.landing_original);
  return record;
}

// Our own bytes are what an earlier session has left.
bool is_like_own(std::span<uint8_t> vdso, const LoadPlaces& here) {
  const auto own = std::span(own_vdso());
  if (vdso.size() != own.size()) return false;
  const auto put_back = [&](std::span<const uint8_t> ours, uint64_t at) {
    const auto there = vdso.subspan(at, ours.size());
    if (std::equal(ours.begin(), ours.end(), there.begin()))
      std::copy_n(own.begin() + static_cast<int64_t>(at), ours.size(), there.begin());
  };
  put_back(kLoadCode, here.load);
  put_back(kLandingCode, here.landing);
  return std::equal(own.begin(), own.end(), vdso.begin());
}

}  // namespace

Expected<LoadPlaces> find_load_places(std::span<const uint8_t> vdso) {
  const auto found = std::search(vdso.begin(), vdso.end(), kEnclu.begin(), kEnclu.end());
  if (found == vdso.end()) {
    return tl::unexpected(
        not_here("the vDSO has no exception table (CONFIG_X86_SGX, Linux 5.11 and later)"));
  }
  const bool is_alone =
      std::search(found + 1, vdso.end(), kEnclu.begin(), kEnclu.end()) == vdso.end();
  const auto load = static_cast<uint64_t>(found - vdso.begin());
  const auto landing = is_alone ? find_landing(vdso, load + kEnclu.size()) : std::nullopt;
  if (!landing || *landing < load + kLoadCode.size() ||
      *landing + kLandingCode.size() > vdso.size())
    return tl::unexpected(not_here("the vDSO's exception table is of an unknown kind"));
  return LoadPlaces{.load = load, .landing = *landing};
}

const Expected<LoadPlaces>& load_places_here() {
  static const Expected<LoadPlaces> kPlaces = [] {
    auto places = find_here();
    log_step(0, "memory is read {}",
             places ? std::string("by loads") : "by the kernel: " + places.error().message);
    return places;
  }();
  return kPlaces;
}

Expected<abi::LoadRecord> find_load(pid_t pid, std::span<const target::Mapping> maps) {
  const LoadPlaces here = CLEW_TRY(load_places_here());
  const target::Mapping* const vdso = vdso_of(maps);
  if (vdso == nullptr) return tl::unexpected(not_here("it has no vDSO"));
  std::vector<uint8_t> bytes(vdso->size_bytes());
  CLEW_TRY(target::read_memory(pid, vdso->start, bytes));
  if (!is_like_own(bytes, here)) {
    return tl::unexpected(not_here("its vDSO is not this machine's"));
  }
  if (auto reason = target::find_odd_mapping(pid, maps)) {
    return tl::unexpected(not_here(std::move(*reason)));
  }
  return record_of(vdso->start, here);
}

bool is_in_vdso(const abi::LoadRecord& record, std::span<const target::Mapping> maps) {
  const target::Mapping* const vdso = vdso_of(maps);
  const auto holds = [vdso](const Part& part) {
    return vdso->contains(part.address) && vdso->contains(part.address + part.ours.size() - 1);
  };
  const auto parts = parts_of(record);
  return vdso != nullptr && std::all_of(parts.begin(), parts.end(), holds);
}

Expected<void> write_load(const StoppedTarget& target, const abi::LoadRecord& record) {
  for (const Part& part : parts_of(record)) {
    if (!has(target, part.address, part.original) && !has(target, part.address, part.ours))
      return fail(ErrorCode::Refused, "somebody else writes to the vDSO");
  }
  for (const Part& part : parts_of(record))
    CLEW_TRY(target.write(part.address, part.ours));
  return {};
}

Expected<void> remove_load(const StoppedTarget& target, const abi::LoadRecord& record) {
  for (const Part& part : parts_of(record)) {
    if (has(target, part.address, part.ours)) CLEW_TRY(target.write(part.address, part.original));
  }
  return {};
}

}  // namespace clew::inline_
