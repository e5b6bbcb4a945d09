// SPDX-License-Identifier: Apache-2.0
#include "output/d/drops.h"

#include <array>
#include <cctype>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

namespace clew::output::d {
namespace {

struct DropWords {
  std::string_view tag;
  std::string_view singular;
  std::string_view plural;
};

DropWords words_of(DropKind kind) {
  switch (kind) {
    case DropKind::Principal:
      return {"DTRACEDROP_PRINCIPAL", "drop", "drops"};
    case DropKind::Aggregation:
      return {"DTRACEDROP_AGGREGATION", "aggregation drop", "aggregation drops"};
    case DropKind::Dynamic:
      return {"DTRACEDROP_DYNAMIC", "dynamic variable drop", "dynamic variable drops"};
    case DropKind::DynamicRinse:
      return {"DTRACEDROP_DYNRINSE", "dynamic variable drop with non-empty rinsing list",
              "dynamic variable drops with non-empty rinsing list"};
    case DropKind::DynamicDirty:
      return {"DTRACEDROP_DYNDIRTY", "dynamic variable drop with non-empty dirty list",
              "dynamic variable drops with non-empty dirty list"};
    case DropKind::Speculative:
      return {"DTRACEDROP_SPEC", "speculative drop", "speculative drops"};
    case DropKind::SpeculationBusy:
      return {"DTRACEDROP_SPECBUSY", "failed speculation (available buffer(s) still busy)",
              "failed speculations (available buffer(s) still busy)"};
    case DropKind::SpeculationUnavailable:
      return {"DTRACEDROP_SPECUNAVAIL", "failed speculation (no speculative buffer available)",
              "failed speculations (no speculative buffer available)"};
    case DropKind::StackOverflow:
      return {"DTRACEDROP_STKSTROVERFLOW", "jstack()/ustack() string table overflow",
              "jstack()/ustack() string table overflows"};
    case DropKind::ErrorInError:
      return {"DTRACEDROP_DBLERROR", "error in ERROR probe enabling",
              "errors in ERROR probe enabling"};
    case DropKind::Nested:
      return {"DTRACEDROP_NESTED", "drop of a probe inside probes",
              "drops of probes inside probes"};
    case DropKind::Fuel:
      return {"DTRACEDROP_FUEL", "firing out of fuel (a loop in an extension)",
              "firings out of fuel (a loop in an extension)"};
    case DropKind::LeftAlone:
      return {"DTRACEDROP_LEFTALONE", "firing not begun (its probe had been out of fuel 8 times)",
              "firings not begun (their probe had been out of fuel 8 times)"};
  }
  return {};
}

struct Counter {
  DropKind kind;
  uint64_t abi::MachineLosses::*member;
};
constexpr std::array<Counter, 9> kCounters = {{
    {DropKind::Dynamic, &abi::MachineLosses::dynamic},
    {DropKind::Speculative, &abi::MachineLosses::speculative},
    {DropKind::SpeculationBusy, &abi::MachineLosses::speculation_busy},
    {DropKind::SpeculationUnavailable, &abi::MachineLosses::speculation_unavailable},
    {DropKind::StackOverflow, &abi::MachineLosses::stack_overflow},
    {DropKind::ErrorInError, &abi::MachineLosses::error_in_error},
    {DropKind::Nested, &abi::MachineLosses::nested},
    {DropKind::Fuel, &abi::MachineLosses::fuel},
    {DropKind::LeftAlone, &abi::MachineLosses::left_alone},
}};

// Faults whose value is the address that was asked for.
bool has_address(abi::MachineFault fault) {
  return fault == abi::MachineFault::BadAddress || fault == abi::MachineFault::BadAlignment ||
         fault == abi::MachineFault::KernelPrivilege || fault == abi::MachineFault::UserPrivilege ||
         fault == abi::MachineFault::BadStack;
}

}  // namespace

std::string drop_text(const Drop& drop, bool has_tags) {
  const DropWords words = words_of(drop.kind);
  const std::string tag = has_tags ? fmt::format("[{}] ", words.tag) : "";
  std::string text = fmt::format("dtrace: {}{} {}", tag, drop.count,
                                 drop.count == 1 ? words.singular : words.plural);
  if (drop.kind == DropKind::Principal || drop.kind == DropKind::Aggregation) {
    text += fmt::format(" on CPU {}", drop.cpu);
  }
  return text + '\n';
}

std::string DropReporter::report(const abi::MachineLosses& losses) {
  std::string text;
  const auto tell = [&](DropKind kind, uint64_t now, uint64_t& seen, uint32_t cpu) {
    if (now != seen) text += drop_text({kind, now - seen, cpu}, has_tags_);
    seen = now;
  };
  for (uint32_t cpu = 0; cpu < abi::kMachineCpusMax; ++cpu) {
    tell(DropKind::Principal, losses.principal[cpu], seen_.principal[cpu], cpu);
    tell(DropKind::Aggregation, losses.aggregation[cpu], seen_.aggregation[cpu], cpu);
  }
  for (const Counter& counter : kCounters)
    tell(counter.kind, losses.*counter.member, seen_.*counter.member, 0);
  return text;
}

std::vector<std::pair<std::string, uint64_t>> dropped(const abi::MachineLosses& losses) {
  std::vector<std::pair<std::string, uint64_t>> all;
  const auto add = [&](DropKind kind, uint64_t count) {
    constexpr std::string_view kPrefix = "DTRACEDROP_";
    std::string name(words_of(kind).tag.substr(kPrefix.size()));
    for (char& letter : name)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (count != 0) all.emplace_back(std::move(name), count);
  };
  add(DropKind::Principal,
      std::accumulate(std::begin(losses.principal), std::end(losses.principal), uint64_t{0}));
  add(DropKind::Aggregation,
      std::accumulate(std::begin(losses.aggregation), std::end(losses.aggregation), uint64_t{0}));
  for (const Counter& counter : kCounters)
    add(counter.kind, losses.*counter.member);
  return all;
}

std::string_view fault_name(abi::MachineFault fault) {
  switch (fault) {
    case abi::MachineFault::BadAddress:
      return "invalid address";
    case abi::MachineFault::BadAlignment:
      return "invalid alignment";
    case abi::MachineFault::IllegalOperation:
      return "illegal operation";
    case abi::MachineFault::DivideByZero:
      return "divide-by-zero";
    case abi::MachineFault::NoScratch:
      return "out of scratch space";
    case abi::MachineFault::KernelPrivilege:
      return "invalid kernel access";
    case abi::MachineFault::UserPrivilege:
      return "invalid user access";
    case abi::MachineFault::TupleOverflow:
      return "tuple stack overflow";
    case abi::MachineFault::BadStack:
      return "bad stack";
    case abi::MachineFault::BadSize:
      return "bad size";
    case abi::MachineFault::BadIndex:
      return "index out of bounds";
    case abi::MachineFault::None:
    case abi::MachineFault::Dropped:
      break;
  }
  return "unknown fault";
}

std::string error_text(const abi::MachineErrorRecord& error, const ProbeNames& probe) {
  const auto fault = static_cast<abi::MachineFault>(error.fault);
  std::string details;
  if (has_address(fault)) {
    details = fmt::format(" ({:#x})", error.value);
  } else if (fault == abi::MachineFault::BadSize || fault == abi::MachineFault::BadIndex) {
    details = fmt::format(" ({})", static_cast<int64_t>(error.value));
  }
  return fmt::format(
      "dtrace: error in dt_clause_{} for probe ID {} ({}:{}:{}:{}): {}{} at BPF pc {}\n",
      error.header.clause, probe.id, probe.provider, probe.module, probe.function, probe.name,
      fault_name(fault), details, error.pc);
}

}  // namespace clew::output::d
