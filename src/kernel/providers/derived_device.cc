// SPDX-License-Identifier: Apache-2.0
// io: requests to block devices. lockstat: the kernel's locks. vminfo and sysinfo: the counters of
// vmstat and mpstat, as probes whose arg0 is what is added.
#include "kernel/providers/derived.h"

namespace clew::kernel {

namespace {

constexpr std::string_view kBio = "struct bio *";
// Bits of contention_begin's flags (trace/events/lock.h).
constexpr uint64_t kLockSpin = 1;
constexpr uint64_t kLockRead = 2;
constexpr uint64_t kLockWrite = 4;
constexpr uint64_t kLockMutex = 32;
constexpr uint64_t kFaultPresent = 1;  // Bit 0 of a page fault's error code: the page was there.

// `bio`: which argument of the attach point the request is.
DerivedProbe io_probe(std::string_view name, AttachKind kind, std::string_view symbol,
                      uint8_t bio) {
  return {
      .provider = "io",
      .name = name,
      .kind = kind,
      .symbol = symbol,
      .map = {bio, bio, bio},
      .arguments = {{kBio, "bufinfo_t *", 0}, {kBio, "devinfo_t *", 0}, {kBio, "fileinfo_t *", 0}}};
}

// The lock is the function's first argument, also at its return.
DerivedProbe lock_probe(std::string_view name, AttachKind kind, std::string_view function,
                        std::string_view type) {
  const uint8_t lock = kind == AttachKind::FunctionReturn ? 2 : 0;
  return {.provider = "lockstat",
          .name = name,
          .kind = kind,
          .symbol = function,
          .is_shown = true,
          .map = {lock},
          .arguments = {{type, type, 0}}};
}

// `taken`: what the function must return.
DerivedFilter returns(bool taken) {
  return {.argument = 1, .mask = UINT32_MAX, .value = 0, .is_inverted = taken};
}

void add_adaptive_locks(std::vector<DerivedProbe>& probes) {
  constexpr std::string_view kMutex = "struct mutex *";
  probes.push_back(
      lock_probe("adaptive-acquire", AttachKind::FunctionReturn, "mutex_lock", kMutex));
  for (const std::string_view function : {"mutex_lock_interruptible", "mutex_lock_killable"}) {
    auto acquire = lock_probe("adaptive-acquire", AttachKind::FunctionReturn, function, kMutex);
    auto error = lock_probe("adaptive-acquire-error", AttachKind::FunctionReturn, function, kMutex);
    acquire.filters = {returns(false)};
    error.filters = {returns(true)};
    probes.push_back(std::move(acquire));
    probes.push_back(std::move(error));
  }
  auto attempt =
      lock_probe("adaptive-acquire", AttachKind::FunctionReturn, "mutex_trylock", kMutex);
  attempt.filters = {{.argument = 1, .mask = 0xff, .value = 1}};
  probes.push_back(std::move(attempt));
  probes.push_back(
      lock_probe("adaptive-release", AttachKind::FunctionEntry, "mutex_unlock", kMutex));
}

void add_spin_locks(std::vector<DerivedProbe>& probes) {
  constexpr std::string_view kSpin = "raw_spinlock_t *";
  constexpr std::string_view kReadWrite = "rwlock_t *";
  for (const std::string_view function :
       {"_raw_spin_lock", "_raw_spin_lock_bh", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave"}) {
    probes.push_back(lock_probe("spin-acquire", AttachKind::FunctionReturn, function, kSpin));
  }
  for (const std::string_view function : {"_raw_spin_unlock", "_raw_spin_unlock_bh",
                                          "_raw_spin_unlock_irq", "_raw_spin_unlock_irqrestore"}) {
    probes.push_back(lock_probe("spin-release", AttachKind::FunctionEntry, function, kSpin));
  }
  for (const std::string_view function : {"_raw_read_lock", "_raw_write_lock"}) {
    probes.push_back(lock_probe("rw-acquire", AttachKind::FunctionReturn, function, kReadWrite));
  }
  for (const std::string_view function : {"_raw_read_unlock", "_raw_write_unlock"}) {
    probes.push_back(lock_probe("rw-release", AttachKind::FunctionEntry, function, kReadWrite));
  }
}

// contention_begin(lock, flags): a thread has to wait now. Unlike elsewhere these fire when the
// wait begins, so there is no arg1 that says how long it took.
DerivedProbe wait_probe(std::string_view name, std::string_view type, DerivedFilter filter) {
  filter.argument = 1;
  return {.provider = "lockstat",
          .name = name,
          .symbol = "contention_begin",
          .map = {0},
          .arguments = {{type, type, 0}},
          .filters = {filter}};
}

DerivedProbe counter(std::string_view provider, std::string_view name, AttachKind kind,
                     std::string_view symbol) {
  return {.provider = provider, .name = name, .kind = kind, .symbol = symbol, .map = {constant(1)}};
}

void add_calls(std::vector<DerivedProbe>& probes, std::string_view name,
               std::initializer_list<std::string_view> calls) {
  for (const std::string_view call : calls) {
    probes.push_back(counter("sysinfo", name, AttachKind::SyscallEntry, call));
    probes.back().is_shown = true;
  }
}

// Bytes that the calls of a kind moved.
void add_bytes(std::vector<DerivedProbe>& probes, std::string_view name,
               std::initializer_list<std::string_view> calls) {
  for (const std::string_view call : calls) {
    probes.push_back({.provider = "sysinfo",
                      .name = name,
                      .kind = AttachKind::SyscallReturn,
                      .symbol = call,
                      .is_shown = true,
                      .map = {1},
                      .filters = {{.argument = 1, .mask = kSignBit, .value = 0}}});
  }
}

void add_memory_counters(std::vector<DerivedProbe>& probes) {
  // page_fault_user(address, registers, error_code)
  auto fault = counter("vminfo", "as_fault", AttachKind::RawTracepoint, "page_fault_user");
  fault.filters = {{.argument = 2, .mask = kFaultPresent, .value = 0}};
  auto protection = fault;
  protection.name = "prot_fault";
  protection.filters[0].value = kFaultPresent;
  probes.push_back(std::move(fault));
  probes.push_back(std::move(protection));
  const auto add = [&probes](std::string_view name, AttachKind kind, std::string_view symbol) {
    probes.push_back(counter("vminfo", name, kind, symbol));
  };
  add("cow_fault", AttachKind::FunctionEntry, "do_wp_page");
  add("maj_fault", AttachKind::FunctionEntry, "swap_read_folio");
  add("pgin", AttachKind::FunctionEntry, "swap_read_folio");
  add("pgswapin", AttachKind::FunctionEntry, "swap_read_folio");
  add("pgout", AttachKind::RawTracepoint, "mm_vmscan_write_folio");
  add("pgswapout", AttachKind::RawTracepoint, "mm_vmscan_write_folio");
  add("pgrrun", AttachKind::RawTracepoint, "mm_vmscan_kswapd_wake");
}

}  // namespace

std::vector<DerivedProbe> io_probes() {
  // block_rq_complete(request, error, bytes): where the completion of a disk's requests is traced;
  // block_bio_complete is for the others.
  DerivedProbe done = io_probe("done", AttachKind::RawTracepoint, "block_rq_complete", 0);
  done.is_shown = true;
  done.map = {kArgumentLoaded, kArgumentLoaded, kArgumentLoaded};
  done.loaded_record = "request";
  done.loaded_member = "bio";
  done.filters = {{.value = 0, .is_inverted = true, .record = "request", .member = "bio"}};
  return {
      done,
      io_probe("start", AttachKind::RawTracepoint, "block_bio_queue", 0),
      io_probe("done", AttachKind::RawTracepoint, "block_bio_complete", 1),
      io_probe("wait-start", AttachKind::FunctionEntry, "submit_bio_wait", 0),
      io_probe("wait-done", AttachKind::FunctionReturn, "submit_bio_wait", 2),
  };
}

std::vector<DerivedProbe> lock_probes() {
  std::vector<DerivedProbe> probes;
  add_adaptive_locks(probes);
  add_spin_locks(probes);
  probes.push_back(wait_probe("adaptive-block", "struct mutex *",
                              {.mask = kLockMutex | kLockSpin, .value = kLockMutex}));
  probes.push_back(wait_probe("adaptive-spin", "struct mutex *",
                              {.mask = kLockMutex | kLockSpin, .value = kLockMutex | kLockSpin}));
  probes.push_back(
      wait_probe("spin-spin", "raw_spinlock_t *",
                 {.mask = kLockMutex | kLockSpin | kLockRead | kLockWrite, .value = kLockSpin}));
  auto rw_spin = wait_probe("rw-spin", "rwlock_t *",
                            {.mask = kLockRead | kLockWrite, .value = 0, .is_inverted = true});
  rw_spin.filters.push_back({.argument = 1, .mask = kLockSpin, .value = kLockSpin});
  auto rw_block = rw_spin;
  rw_block.name = "rw-block";
  rw_block.arguments = {{"struct rw_semaphore *", "struct rw_semaphore *", 0}};
  rw_block.filters[1].value = 0;
  probes.push_back(std::move(rw_spin));
  probes.push_back(std::move(rw_block));
  return probes;
}

std::vector<DerivedProbe> counter_probes() {
  std::vector<DerivedProbe> probes;
  add_memory_counters(probes);
  add_calls(probes, "sysread", {"read", "pread64", "readv", "preadv", "preadv2"});
  add_calls(probes, "syswrite", {"write", "pwrite64", "writev", "pwritev", "pwritev2"});
  add_calls(probes, "sysexec", {"execve", "execveat"});
  add_calls(probes, "sysfork", {"fork", "clone", "clone3"});
  add_calls(probes, "sysvfork", {"vfork"});
  add_calls(probes, "msg", {"msgsnd", "msgrcv"});
  add_calls(probes, "sema", {"semop", "semtimedop"});
  add_bytes(probes, "readch", {"read", "pread64", "readv", "preadv", "preadv2"});
  add_bytes(probes, "writech", {"write", "pwrite64", "writev", "pwritev", "pwritev2"});
  const auto add = [&probes](std::string_view name, AttachKind kind, std::string_view symbol) {
    probes.push_back(counter("sysinfo", name, kind, symbol));
  };
  add("pswitch", AttachKind::RawTracepoint, "sched_switch");
  add("inv_swtch", AttachKind::RawTracepoint, "sched_switch");
  probes.back().filters = {{.argument = 0, .mask = 0xff, .value = 1}};
  add("cpumigrate", AttachKind::RawTracepoint, "sched_migrate_task");
  add("nthreads", AttachKind::RawTracepoint, "task_newtask");
  add("namei", AttachKind::FunctionEntry, "link_path_walk");
  add("modload", AttachKind::RawTracepoint, "module_load");
  add("modunload", AttachKind::RawTracepoint, "module_free");
  add("mutex_adenters", AttachKind::RawTracepoint, "contention_begin");
  probes.back().filters = {{.argument = 1, .mask = kLockMutex, .value = kLockMutex}};
  return probes;
}

}  // namespace clew::kernel
