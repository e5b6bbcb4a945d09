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
  uint64_t abi::DLosses::*member;
};
constexpr std::array<Counter, 9> kCounters = {{
    {DropKind::Dynamic, &abi::DLosses::dynamic},
    {DropKind::Speculative, &abi::DLosses::speculative},
    {DropKind::SpeculationBusy, &abi::DLosses::speculation_busy},
    {DropKind::SpeculationUnavailable, &abi::DLosses::speculation_unavailable},
    {DropKind::StackOverflow, &abi::DLosses::stack_overflow},
    {DropKind::ErrorInError, &abi::DLosses::error_in_error},
    {DropKind::Nested, &abi::DLosses::nested},
    {DropKind::Fuel, &abi::DLosses::fuel},
    {DropKind::LeftAlone, &abi::DLosses::left_alone},
}};

// Faults whose value is the address that was asked for.
bool has_address(abi::DFault fault) {
  return fault == abi::DFault::BadAddress || fault == abi::DFault::BadAlignment ||
         fault == abi::DFault::KernelPrivilege || fault == abi::DFault::UserPrivilege ||
         fault == abi::DFault::BadStack;
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

std::string DropReporter::report(const abi::DLosses& losses) {
  std::string text;
  const auto tell = [&](DropKind kind, uint64_t now, uint64_t& seen, uint32_t cpu) {
    if (now != seen) text += drop_text({kind, now - seen, cpu}, has_tags_);
    seen = now;
  };
  for (uint32_t cpu = 0; cpu < abi::kDCpusMax; ++cpu) {
    tell(DropKind::Principal, losses.principal[cpu], seen_.principal[cpu], cpu);
    tell(DropKind::Aggregation, losses.aggregation[cpu], seen_.aggregation[cpu], cpu);
  }
  for (const Counter& counter : kCounters)
    tell(counter.kind, losses.*counter.member, seen_.*counter.member, 0);
  return text;
}

std::vector<std::pair<std::string, uint64_t>> dropped(const abi::DLosses& losses) {
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

std::string_view fault_name(abi::DFault fault) {
  switch (fault) {
    case abi::DFault::BadAddress:
      return "invalid address";
    case abi::DFault::BadAlignment:
      return "invalid alignment";
    case abi::DFault::IllegalOperation:
      return "illegal operation";
    case abi::DFault::DivideByZero:
      return "divide-by-zero";
    case abi::DFault::NoScratch:
      return "out of scratch space";
    case abi::DFault::KernelPrivilege:
      return "invalid kernel access";
    case abi::DFault::UserPrivilege:
      return "invalid user access";
    case abi::DFault::TupleOverflow:
      return "tuple stack overflow";
    case abi::DFault::BadStack:
      return "bad stack";
    case abi::DFault::BadSize:
      return "bad size";
    case abi::DFault::BadIndex:
      return "index out of bounds";
    case abi::DFault::None:
    case abi::DFault::Dropped:
      break;
  }
  return "unknown fault";
}

std::string error_text(const abi::DErrorRecord& error, const ProbeNames& probe) {
  const auto fault = static_cast<abi::DFault>(error.fault);
  std::string details;
  if (has_address(fault)) {
    details = fmt::format(" ({:#x})", error.value);
  } else if (fault == abi::DFault::BadSize || fault == abi::DFault::BadIndex) {
    details = fmt::format(" ({})", static_cast<int64_t>(error.value));
  }
  return fmt::format(
      "dtrace: error in dt_clause_{} for probe ID {} ({}:{}:{}:{}): {}{} at BPF pc {}\n",
      error.header.clause, probe.id, probe.provider, probe.module, probe.function, probe.name,
      fault_name(fault), details, error.pc);
}

}  // namespace clew::output::d
