// SPDX-License-Identifier: Apache-2.0
#include "recorder/stamps.h"

#include <algorithm>
#include <array>

#include "code/import_slot.h"

namespace clew::recorder {

namespace {

using abi::Register;
using abi::Transfer;

// glibc's functions, what -D_FORTIFY_SOURCE makes of them, and libstdc++'s.
constexpr auto kStampedNames = std::to_array<StampedName>({
    StampedName{"_ZNSt18condition_variable10notify_allEv", Stamped::InFront},
    StampedName{"_ZNSt18condition_variable10notify_oneEv", Stamped::InFront},
    StampedName{"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", Stamped::Around},
    StampedName{
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
        Stamped::InFront},
    StampedName{"_ZNSt6thread4joinEv", Stamped::Around},
    StampedName{"__poll_chk", Stamped::Around},
    StampedName{"__ppoll_chk", Stamped::Around},
    StampedName{"__pread64_chk", Stamped::Around},
    StampedName{"__pread_chk", Stamped::Around},
    StampedName{"__read_chk", Stamped::Around, Transfer::Receives},
    StampedName{"__recv_chk", Stamped::Around, Transfer::Receives, Register::R8},
    StampedName{"__recvfrom_chk", Stamped::Around, Transfer::Receives, Register::R8},
    StampedName{"accept", Stamped::Around, Transfer::Accepts},
    StampedName{"accept4", Stamped::Around, Transfer::Accepts},
    StampedName{"clock_nanosleep", Stamped::Around},
    StampedName{"close", Stamped::InFront, Transfer::Closes},
    StampedName{"cnd_broadcast", Stamped::InFront},
    StampedName{"cnd_signal", Stamped::InFront},
    StampedName{"cnd_timedwait", Stamped::Around},
    StampedName{"cnd_wait", Stamped::Around},
    StampedName{"connect", Stamped::Around, Transfer::Connects},
    StampedName{"epoll_pwait", Stamped::Around},
    StampedName{"epoll_pwait2", Stamped::Around},
    StampedName{"epoll_wait", Stamped::Around},
    StampedName{"eventfd_read", Stamped::Behind},
    StampedName{"eventfd_write", Stamped::InFront},
    StampedName{"fdatasync", Stamped::Around},
    StampedName{"fsync", Stamped::Around},
    StampedName{"kill", Stamped::InFront},
    StampedName{"mq_receive", Stamped::Around},
    StampedName{"mq_send", Stamped::InFront},
    StampedName{"mq_timedreceive", Stamped::Around},
    StampedName{"mq_timedsend", Stamped::InFront},
    StampedName{"msgrcv", Stamped::Around},
    StampedName{"msgsnd", Stamped::InFront},
    StampedName{"mtx_lock", Stamped::Behind},
    StampedName{"mtx_timedlock", Stamped::Behind},
    StampedName{"mtx_trylock", Stamped::Behind},
    StampedName{"mtx_unlock", Stamped::InFront},
    StampedName{"nanosleep", Stamped::Around},
    StampedName{"pause", Stamped::Around},
    StampedName{"poll", Stamped::Around},
    StampedName{"ppoll", Stamped::Around},
    StampedName{"pread", Stamped::Around},
    StampedName{"pread64", Stamped::Around},
    StampedName{"preadv", Stamped::Around},
    StampedName{"pselect", Stamped::Around},
    StampedName{"pthread_barrier_wait", Stamped::Around},
    StampedName{"pthread_clockjoin_np", Stamped::Around},
    StampedName{"pthread_cond_broadcast", Stamped::InFront},
    StampedName{"pthread_cond_clockwait", Stamped::Around},
    StampedName{"pthread_cond_signal", Stamped::InFront},
    StampedName{"pthread_cond_timedwait", Stamped::Around},
    StampedName{"pthread_cond_wait", Stamped::Around},
    StampedName{"pthread_create", Stamped::InFront},
    StampedName{"pthread_join", Stamped::Around},
    StampedName{"pthread_kill", Stamped::InFront},
    StampedName{"pthread_mutex_clocklock", Stamped::Behind},
    StampedName{"pthread_mutex_lock", Stamped::Behind},
    StampedName{"pthread_mutex_timedlock", Stamped::Behind},
    StampedName{"pthread_mutex_trylock", Stamped::Behind},
    StampedName{"pthread_mutex_unlock", Stamped::InFront},
    StampedName{"pthread_rwlock_clockrdlock", Stamped::Behind},
    StampedName{"pthread_rwlock_clockwrlock", Stamped::Behind},
    StampedName{"pthread_rwlock_rdlock", Stamped::Behind},
    StampedName{"pthread_rwlock_timedrdlock", Stamped::Behind},
    StampedName{"pthread_rwlock_timedwrlock", Stamped::Behind},
    StampedName{"pthread_rwlock_tryrdlock", Stamped::Behind},
    StampedName{"pthread_rwlock_trywrlock", Stamped::Behind},
    StampedName{"pthread_rwlock_unlock", Stamped::InFront},
    StampedName{"pthread_rwlock_wrlock", Stamped::Behind},
    StampedName{"pthread_timedjoin_np", Stamped::Around},
    StampedName{"pwrite", Stamped::InFront},
    StampedName{"pwrite64", Stamped::InFront},
    StampedName{"pwritev", Stamped::InFront},
    StampedName{"read", Stamped::Around, Transfer::Receives},
    StampedName{"readv", Stamped::Around, Transfer::Receives},
    StampedName{"recv", Stamped::Around, Transfer::Receives, Register::Rcx},
    StampedName{"recvfrom", Stamped::Around, Transfer::Receives, Register::Rcx},
    StampedName{"recvmmsg", Stamped::Around, Transfer::ReceivesSome},
    StampedName{"recvmsg", Stamped::Around, Transfer::Receives},
    StampedName{"select", Stamped::Around},
    StampedName{"sem_clockwait", Stamped::Around},
    StampedName{"sem_post", Stamped::InFront},
    StampedName{"sem_timedwait", Stamped::Around},
    StampedName{"sem_trywait", Stamped::Behind},
    StampedName{"sem_wait", Stamped::Around},
    StampedName{"semop", Stamped::Around},
    StampedName{"semtimedop", Stamped::Around},
    StampedName{"send", Stamped::Around, Transfer::Sends},
    StampedName{"sendfile", Stamped::Around, Transfer::Sends},
    StampedName{"sendfile64", Stamped::Around, Transfer::Sends},
    StampedName{"sendmmsg", Stamped::Around, Transfer::SendsSome},
    StampedName{"sendmsg", Stamped::Around, Transfer::Sends},
    StampedName{"sendto", Stamped::Around, Transfer::Sends},
    StampedName{"shutdown", Stamped::InFront},
    StampedName{"sigqueue", Stamped::InFront},
    StampedName{"sigsuspend", Stamped::Around},
    StampedName{"sigtimedwait", Stamped::Around},
    StampedName{"sigwait", Stamped::Around},
    StampedName{"sigwaitinfo", Stamped::Around},
    StampedName{"sleep", Stamped::Around},
    StampedName{"splice", Stamped::Around, Transfer::ReceivesSome},
    StampedName{"syscall", Stamped::Around},
    StampedName{"tgkill", Stamped::InFront},
    StampedName{"thrd_create", Stamped::InFront},
    StampedName{"thrd_join", Stamped::Around},
    StampedName{"usleep", Stamped::Around},
    StampedName{"wait", Stamped::Around},
    StampedName{"wait3", Stamped::Around},
    StampedName{"wait4", Stamped::Around},
    StampedName{"waitid", Stamped::Around},
    StampedName{"waitpid", Stamped::Around},
    StampedName{"write", Stamped::Around, Transfer::Sends},
    StampedName{"writev", Stamped::Around, Transfer::Sends},
});

constexpr bool is_less(const StampedName& one, const StampedName& other) {
  return one.name < other.name;
}
static_assert(std::is_sorted(kStampedNames.begin(), kStampedNames.end(), is_less));

bool exports(const target::LinkedNames& names, std::string_view symbol) {
  const auto own = std::lower_bound(
      names.exports.begin(), names.exports.end(), symbol,
      [](const target::ExportedFunction& one, std::string_view name) { return one.name < name; });
  return own != names.exports.end() && own->name == symbol;
}

}  // namespace

std::span<const StampedName> stamped_names() {
  return kStampedNames;
}

std::vector<StampedImport> stamped_imports(const target::LinkedNames& names) {
  std::vector<StampedImport> found;
  for (const target::ImportSlot& slot : names.imports) {
    const StampedName wanted = {.name = slot.symbol};
    const auto known =
        std::lower_bound(kStampedNames.begin(), kStampedNames.end(), wanted, is_less);
    if (known == kStampedNames.end() || known->name != slot.symbol || exports(names, slot.symbol))
      continue;
    found.push_back({slot.slot_address, known->where, known->transfer, known->flags});
  }
  std::sort(found.begin(), found.end(),
            [](const StampedImport& a, const StampedImport& b) { return a.slot < b.slot; });
  return found;
}

uint32_t transfer_bits(const StampedImport& import) {
  const uint32_t flags = import.flags ? static_cast<uint32_t>(*import.flags) + 1 : 0;
  return static_cast<uint32_t>(import.transfer) | flags << 8;
}

std::optional<StampedImport> stamped_import(uint64_t slot, Stamped where, uint32_t bits) {
  StampedImport import{slot, where, static_cast<abi::Transfer>(bits & 0xff)};
  if (import.transfer > Transfer::Accepts) return std::nullopt;
  for (const auto flags :
       {std::optional<Register>(), std::optional(Register::Rcx), std::optional(Register::R8)}) {
    import.flags = flags;
    if (transfer_bits(import) == bits) return import;
  }
  return std::nullopt;
}

const StampedImport* stamped_by(std::span<const StampedImport> all, const code::ModuleCode& code,
                                const code::Instruction& branch) {
  if (all.empty()) return nullptr;
  const auto slot = code::import_slot(code, branch);
  if (!slot) return nullptr;
  const auto found = std::lower_bound(
      all.begin(), all.end(), *slot,
      [](const StampedImport& one, uint64_t address) { return one.slot < address; });
  return found != all.end() && found->slot == *slot ? &*found : nullptr;
}

}  // namespace clew::recorder
