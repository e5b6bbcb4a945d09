// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/catalogue.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/providers/kernel_view.h"
#include "kernel/providers/syscall_table.h"

// What pid probes of this very program look for. Not static: it needs a symbol. Nothing but its
// instructions: clang's check of calls puts data before a function's first, which may be no code.
extern "C" __attribute__((noinline, no_sanitize("undefined"))) long clew_probe_me(long value);
long clew_probe_me(long value) {
  return value * 3 + 1;
}

namespace clew::kernel {
namespace {

class Probes : public testing::Test {
 protected:
  std::vector<const Probe*> match(const ProbePattern& pattern) {
    const auto ids = catalogue_.match(pattern);
    EXPECT_TRUE(ids.has_value()) << ids.error().message;
    std::vector<const Probe*> result;
    if (!ids) return result;
    for (const uint32_t id : *ids)
      result.push_back(catalogue_.find(id));
    return result;
  }
  const Probe* only(const ProbePattern& pattern) {
    const auto found = match(pattern);
    EXPECT_EQ(found.size(), 1U);
    return found.size() == 1 ? found[0] : nullptr;
  }
  size_t count(const ProbePattern& pattern) { return match(pattern).size(); }

  std::vector<std::string> types(uint32_t id) {
    const auto arguments = catalogue_.arguments(id);
    std::vector<std::string> result;
    EXPECT_TRUE(arguments.has_value()) << arguments.error().message;
    if (!arguments) return result;
    for (const auto& each : *arguments)
      result.push_back(each.translated_type);
    return result;
  }
  Catalogue catalogue_;
};

// Of the kernel's own lists.
class KernelProbes : public Probes {
 protected:
  void SetUp() override {
    KernelView kernel;
    if (!kernel.types() || !kernel.tracefs()) GTEST_SKIP() << "the kernel's lists cannot be read";
  }
};

using Types = std::vector<std::string>;

TEST_F(Probes, OfTheTracerHaveTheFirstIds) {
  EXPECT_EQ(only({.name = "BEGIN"})->id, kBeginProbe);
  EXPECT_EQ(only({.provider = "dtrace", .name = "END"})->id, kEndProbe);
  EXPECT_EQ(only({.provider = "d*", .name = "ERROR"})->id, kErrorProbe);
  EXPECT_EQ(catalogue_.find(0), nullptr);
  EXPECT_EQ(catalogue_.find(4), nullptr);
}

TEST_F(Probes, OfTimeAreMadeWhenTheyAreNamed) {
  const Probe* tick = only({.name = "tick-1s"});
  ASSERT_NE(tick, nullptr);
  EXPECT_EQ(tick->provider, "profile");
  EXPECT_EQ(tick->kind, AttachKind::Tick);
  EXPECT_EQ(tick->period_ns, 1'000'000'000U);
  const Probe* profile = only({.provider = "profile", .name = "profile-997"});
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->kind, AttachKind::Profile);
  EXPECT_EQ(profile->period_ns, 1'000'000'000U / 997);
  EXPECT_EQ(only({.name = "tick-100ms"})->period_ns, 100'000'000U);
  EXPECT_EQ(only({.name = "tick-10hz"})->period_ns, 100'000'000U);
  EXPECT_EQ(only({.name = "tick-2min"})->period_ns, 120'000'000'000U);
  EXPECT_EQ(only({.name = "profile-250usec"})->period_ns, 250'000U);
  EXPECT_EQ(only({.name = "tick-1d"})->period_ns, 86'400'000'000'000U);
}

TEST_F(Probes, OfTimeThatAreMalformedOrTooFastDoNotExist) {
  for (const char* name : {"tick-0", "tick-", "tick-1x", "tick-x", "profile-5001", "profile-1us",
                           "tick-99999999999d", "tick--1", "tick-18446744073709551616"}) {
    EXPECT_EQ(count({.provider = "profile", .name = name}), 0U) << name;
  }
}

TEST_F(Probes, OfTimeThatGlobsSeeAreTheUsualOnesAndThoseMade) {
  EXPECT_EQ(count({.provider = "profile", .name = "profile-*"}), 7U);
  EXPECT_EQ(count({.provider = "profile", .name = "tick-*"}), 6U);
  EXPECT_EQ(count({.name = "tick-7s"}), 1U);
  EXPECT_EQ(count({.provider = "profile", .name = "tick-*"}), 7U);
}

TEST_F(Probes, KeepTheirIdsWhenTheyAreMatchedAgain) {
  const uint32_t id = only({.name = "tick-3s"})->id;
  (void)only({.name = "tick-4s"});
  EXPECT_EQ(only({.name = "tick-3s"})->id, id);
}

TEST_F(Probes, OfSystemCallsHaveTheNumbersOfTheHeader) {
  const Probe* read = only({.provider = "syscall", .function = "read", .name = "entry"});
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->module, "vmlinux");
  EXPECT_EQ(read->number, static_cast<uint32_t>(SYS_read));
  EXPECT_EQ(read->kind, AttachKind::SyscallEntry);
  EXPECT_EQ(only({.function = "openat", .name = "return"})->number,
            static_cast<uint32_t>(SYS_openat));
  EXPECT_EQ(only({.function = "io_uring_enter", .name = "return"})->number,
            static_cast<uint32_t>(SYS_io_uring_enter));
  EXPECT_EQ(count({.provider = "syscall", .function = "no_such_call"}), 0U);
}

TEST_F(Probes, OfSystemCallsAreFoundByTheProgramsNameToo) {
  const Probe* stat = only({.provider = "syscall", .function = "fstat", .name = "entry"});
  ASSERT_NE(stat, nullptr);
  EXPECT_EQ(stat->function, "newfstat");
  EXPECT_EQ(stat->number, static_cast<uint32_t>(SYS_fstat));
}

TEST_F(KernelProbes, OfSystemCallsAreAllThatTheKernelTraces) {
  KernelView kernel;
  const auto text = (*kernel.tracefs())->read("available_events");
  ASSERT_TRUE(text.has_value());
  std::set<std::string> theirs;
  for (size_t at = text->find("syscalls:sys_enter_"); at != std::string::npos;
       at = text->find("syscalls:sys_enter_", at + 1)) {
    theirs.insert(text->substr(at + 19, text->find('\n', at) - at - 19));
  }
  for (const char* name : {"uretprobe", "uprobe"}) {  // Of probes: they have to be named.
    if (theirs.erase(name) == 0) continue;
    EXPECT_EQ(count({.provider = "syscall", .function = name, .name = "entry"}), 1U);
  }
  std::set<std::string> ours;
  for (const Probe* probe : match({.provider = "syscall", .name = "entry"})) {
    ours.insert(probe->function);
  }
  EXPECT_EQ(ours, theirs);
  EXPECT_EQ(count({.provider = "syscall"}), 2 * theirs.size());
}

TEST_F(KernelProbes, OfSystemCallsHaveTypedArguments) {
  EXPECT_EQ(types(only({.provider = "syscall", .function = "read", .name = "entry"})->id),
            (Types{"unsigned int", "char *", "size_t"}));
  EXPECT_EQ(types(only({.provider = "syscall", .function = "openat", .name = "entry"})->id),
            (Types{"int", "char *", "int", "umode_t"}));
  EXPECT_EQ(types(only({.provider = "syscall", .function = "execve", .name = "entry"})->id),
            (Types{"char *", "char **", "char **"}));
  EXPECT_EQ(types(only({.provider = "syscall", .function = "read", .name = "return"})->id),
            (Types{"long", "long"}));
}

TEST_F(KernelProbes, OfTracepointsAreRawAndTyped) {
  const Probe* raw = only({.provider = "rawtp", .name = "sched_switch"});
  ASSERT_NE(raw, nullptr);
  EXPECT_EQ(raw->module, "vmlinux");
  EXPECT_EQ(raw->function, "");
  EXPECT_EQ(raw->symbol, "sched_switch");
  const Types arguments = types(raw->id);
  ASSERT_GE(arguments.size(), 3U);
  EXPECT_EQ(arguments[0], "bool");
  EXPECT_EQ(arguments[1], "struct task_struct *");
  EXPECT_EQ(arguments[2], "struct task_struct *");
}

TEST_F(KernelProbes, OfTraceEventsHaveTheirGroup) {
  const Probe* event = only({.provider = "sdt", .name = "sched_switch"});
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->function, "sched");
  EXPECT_EQ(event->kind, AttachKind::RawTracepoint);
  EXPECT_EQ(only({.provider = "sdt", .module = "sched", .name = "sched_switch"}), event);
  EXPECT_EQ(only({.provider = "sdt", .function = "sched", .name = "sched_switch"}), event);
  EXPECT_EQ(count({.provider = "sdt", .module = "irq", .name = "sched_switch"}), 0U);
}

TEST_F(KernelProbes, OfTracepointsAreAllThatTheKernelHas) {
  KernelView kernel;
  const target::Btf& btf = **kernel.types();
  size_t raw = 0;
  for (target::BtfId id = 1; id < btf.end_id(); ++id) {
    const target::BtfType type = btf.at(id);
    if (type.kind == target::BtfKind::Typedef && type.name.starts_with("btf_trace_")) ++raw;
  }
  EXPECT_EQ(count({.provider = "rawtp", .module = "vmlinux"}), raw);
  const auto events = *kernel.events();
  const auto sdt = match({.provider = "sdt"});
  EXPECT_LE(sdt.size(), events.size());
  // Only what is no tracepoint is missing: events of ftrace itself, and those that users define.
  size_t left_out = 0;
  for (const TraceEvent& event : events) {
    const bool is_there = std::any_of(sdt.begin(), sdt.end(), [&event](const Probe* probe) {
      return probe->name == event.name && probe->function == event.group;
    });
    if (is_there) continue;
    ++left_out;
    EXPECT_FALSE((*kernel.find_tracepoint(event.name)).types != nullptr) << event.name;
  }
  EXPECT_EQ(sdt.size() + left_out, events.size());
}

TEST_F(KernelProbes, OfFunctionsHaveTheTypesOfTheirPrototypes) {
  const Probe* entry = only({.provider = "fbt", .function = "vfs_read", .name = "entry"});
  const Probe* exit = only({.provider = "fbt", .function = "vfs_read", .name = "return"});
  ASSERT_TRUE(entry != nullptr && exit != nullptr);
  EXPECT_EQ(entry->kind, AttachKind::FunctionEntry);
  EXPECT_EQ(entry->symbol, "vfs_read");
  EXPECT_EQ(types(entry->id), (Types{"struct file *", "char *", "size_t", "loff_t *"}));
  EXPECT_EQ(types(exit->id), (Types{"int", "ssize_t"}));
  EXPECT_EQ(count({.provider = "fbt", .function = "vfs_read"}), 2U);
  EXPECT_EQ(count({.provider = "fbt", .function = "no_such_function"}), 0U);
  EXPECT_GT(count({.provider = "fbt", .function = "vfs_*", .name = "entry"}), 20U);
}

TEST_F(KernelProbes, OfProcessesStandForTracepointsWithConditions) {
  const Probe* create = only({.provider = "proc", .name = "create"});
  ASSERT_NE(create, nullptr);
  EXPECT_EQ(create->symbol, "task_newtask");
  EXPECT_EQ(create->filter_argument, 1);
  EXPECT_EQ(create->filter_mask, 0x10000U);
  EXPECT_EQ(create->filter_value, 0U);
  EXPECT_EQ(types(create->id), (Types{"psinfo_t *"}));
  const Probe* send = only({.provider = "proc", .name = "signal-send"});
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->argument_map, (std::vector<uint8_t>{2, 2, 0}));
  EXPECT_EQ(types(send->id), (Types{"lwpsinfo_t *", "psinfo_t *", "int"}));
}

// Each reason is a probe of its own: conditions on the task's exit code, and a constant.
TEST_F(KernelProbes, OfExitTellTheirReason) {
  const auto exits = match({.provider = "proc", .name = "exit"});
  ASSERT_EQ(exits.size(), 3U);
  EXPECT_EQ(exits[0]->argument_map, std::vector<uint8_t>{kArgumentNumber + 1});
  ASSERT_EQ(exits[0]->more_filters.size(), 1U);
  EXPECT_EQ(exits[0]->more_filters[0].load_bytes, 4);
  EXPECT_EQ(exits[0]->more_filters[0].mask, 0x7fU);
  EXPECT_FALSE(exits[0]->more_filters[0].is_inverted);
  EXPECT_TRUE(exits[1]->more_filters[0].is_inverted);
  EXPECT_EQ(types(exits[0]->id), Types{"int"});
}

TEST_F(KernelProbes, OfProvidersOfTheBookExist) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"proc", "exec-success"},   {"proc", "lwp-exit"},
      {"proc", "start"},          {"sched", "off-cpu"},
      {"sched", "wakeup"},        {"sched", "sleep"},
      {"sched", "tick"},          {"io", "start"},
      {"io", "wait-start"},       {"tcp", "state-change"},
      {"tcp", "connect-request"}, {"tcp", "accept-established"},
      {"sysinfo", "pswitch"},     {"vminfo", "as_fault"},
  };
  for (const auto& [provider, name] : names) {
    EXPECT_EQ(count({.provider = provider, .name = name}), 1U) << provider << ":::" << name;
  }
  EXPECT_EQ(count({.provider = "io", .name = "done"}), 2U);
  EXPECT_EQ(count({.provider = "ip", .name = "send"}), 2U);
  EXPECT_EQ(count({.provider = "udp", .name = "receive"}), 2U);
  EXPECT_EQ(count({.provider = "sysinfo", .function = "read", .name = "readch"}), 1U);
  EXPECT_GE(count({.provider = "lockstat", .name = "adaptive-acquire"}), 1U);
}

TEST_F(KernelProbes, ThatTheKernelCannotGiveAreRefusedByName) {
  KernelView kernel;
  if ((*kernel.find_tracepoint("module_load")).types != nullptr) {
    GTEST_SKIP() << "this kernel has modules";
  }
  const auto result = catalogue_.match({.provider = "sysinfo", .name = "modload"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::Refused);
  EXPECT_EQ(
      result.error().message,
      "sysinfo:::modload needs the tracepoint 'module_load', which this kernel does not have");
  EXPECT_EQ(count({.provider = "sysinfo", .name = "modloa?"}), 0U);
}

TEST_F(Probes, OfAProcessAreItsFunctions) {
  const std::string provider = "pid" + std::to_string(getpid());
  const ProbePattern entry = {
      .provider = provider, .module = "a.out", .function = "clew_probe_me", .name = "entry"};
  const Probe* probe = only(entry);
  ASSERT_NE(probe, nullptr);
  EXPECT_EQ(probe->kind, AttachKind::UserEntry);
  EXPECT_EQ(probe->pid, getpid());
  EXPECT_EQ(probe->function, "clew_probe_me");
  // The bytes in the file at the offset are those of the function.
  std::vector<uint8_t> bytes(16);
  FILE* file = fopen(probe->path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(fseek(file, static_cast<long>(probe->offset_bytes), SEEK_SET), 0);
  ASSERT_EQ(fread(bytes.data(), 1, bytes.size(), file), bytes.size());
  (void)fclose(file);
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const uint8_t*>(&clew_probe_me)));
  EXPECT_EQ(only({.provider = provider, .function = "clew_probe_*", .name = "return"})->kind,
            AttachKind::UserReturn);
  EXPECT_EQ(clew_probe_me(1), 4);
}

TEST_F(Probes, OfAProcessAreItsInstructions) {
  const std::string provider = "pid" + std::to_string(getpid());
  const auto at = [&provider](const std::string& name) {
    return ProbePattern{.provider = provider, .function = "clew_probe_me", .name = name};
  };
  const auto all = match(at(""));
  ASSERT_GE(all.size(), 4U);  // entry, return, and two instructions at least.
  const Probe* first = only(at("0"));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->kind, AttachKind::UserOffset);
  EXPECT_EQ(first->offset_bytes, only(at("entry"))->offset_bytes);
  const Probe* last = all.back();
  EXPECT_EQ(std::stoul(last->name, nullptr, 16), last->offset_bytes - first->offset_bytes);
  // The last instruction is `ret`: one byte, and nothing of the function behind it.
  const auto inside = catalogue_.match(at("fff"));
  ASSERT_FALSE(inside.has_value());
  EXPECT_EQ(inside.error().code, ErrorCode::Refused);
}

// A return probe takes the return address away, and at these places there is none.
TEST_F(Probes, OfReturnsAreNotSetWhereNothingWasCalled) {
  const std::string provider = "pid" + std::to_string(getpid());
  const auto start = catalogue_.match(
      {.provider = provider, .module = "a.out", .function = "_start", .name = "return"});
  ASSERT_FALSE(start.has_value());
  EXPECT_EQ(start.error().code, ErrorCode::Refused);
  EXPECT_EQ(count({.provider = provider, .module = "a.out", .function = "_star?"}) > 0, true);
  EXPECT_EQ(count({.provider = provider, .function = "*.cold*", .name = "entry"}), 0U);
}

TEST_F(Probes, OfLocksStandForFunctionsOfTheLibrary) {
  const std::string provider = "plockstat" + std::to_string(getpid());
  const Probe* release = only({.provider = provider, .name = "mutex-release"});
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->function, "pthread_mutex_unlock");
  EXPECT_EQ(release->kind, AttachKind::UserEntry);
  EXPECT_EQ(count({.provider = provider, .name = "mutex-acquire"}), 4U);
  const Probe* block =
      only({.provider = provider, .function = "pthread_rwlock_wrlock", .name = "rw-block"});
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->kind, AttachKind::LockWait);
  EXPECT_EQ(block->lock_kind, abi::MachineLockKind::Write);
  EXPECT_EQ(count({.provider = provider, .function = "pthread_mutex_lock"}), 4U);
  EXPECT_EQ(count({.provider = provider, .name = "mutex-error"}), 5U);
}

TEST_F(Probes, OfLibrariesAreFoundByTheirShortName) {
  const std::string provider = "pid" + std::to_string(getpid());
  const Probe* write =
      only({.provider = provider, .module = "libc", .function = "getpid", .name = "entry"});
  ASSERT_NE(write, nullptr);
  EXPECT_EQ(write->module, "libc.so.6");
}

TEST_F(Probes, OfAProcessThatIsNotThereAreAnError) {
  const auto result = catalogue_.match({.provider = "pid99999999", .name = "entry"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::NotFound);
  EXPECT_EQ(result.error().message, "failed to grab pid 99999999: No such process");
}

TEST_F(Probes, OfUsdtStandForAllProcessesWhenTheGlobDoes) {
  const std::string provider = "libstdcxx" + std::to_string(getpid());
  ASSERT_GT(count({.provider = provider, .name = "throw"}), 0);
  // Ours are left out by globs: those of one process are asked for.
  const ProbePattern any = {.provider = "libstdc*", .name = "throw"};
  const ProbePattern some = {.provider = "libstdcxx?*", .name = "throw"};
  EXPECT_FALSE(only({.provider = provider, .name = "throw"})->is_everywhere);
  EXPECT_TRUE(catalogue_.match_process(any, getpid())->empty());
  EXPECT_TRUE(catalogue_.match_process(some, getpid())->empty());
  EXPECT_EQ(catalogue_.match_process({.provider = provider, .name = "throw"}, getpid())->size(),
            1U);
  EXPECT_TRUE(catalogue_.match_process({.provider = provider, .name = "throw"}, 1)->empty());
}

// This program is linked with libstdc++, which has USDT probes on Debian.
TEST_F(Probes, OfUsdtAreNamedByProviderAndProcess) {
  const std::string provider = "libstdcxx" + std::to_string(getpid());
  const auto found = match({.provider = provider});
  ASSERT_FALSE(found.empty());
  const Probe* probe = only({.provider = provider, .name = "throw"});
  ASSERT_NE(probe, nullptr);
  EXPECT_EQ(probe->kind, AttachKind::Usdt);
  EXPECT_EQ(probe->pid, getpid());
  EXPECT_EQ(probe->function, "__cxa_throw");
  EXPECT_FALSE(probe->usdt_arguments.empty());
  EXPECT_EQ(types(probe->id).size(), 2U);
  EXPECT_EQ(count({.provider = "libstdcxx"}), 0U);
}

}  // namespace
}  // namespace clew::kernel
