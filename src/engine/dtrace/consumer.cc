// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/consumer.h"

#include <array>
#include <cstring>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::engine {

using abi::DRecordHeader;
using abi::DRecordKind;

DtraceConsumer::DtraceConsumer(const CompiledScript& compiled, const kernel::Catalogue& catalogue,
                               kernel::DSession& session, DtraceConsole& console,
                               target::AddressSpaces& spaces)
    : compiled_(compiled),
      catalogue_(catalogue),
      session_(session),
      console_(console),
      symbols_(spaces),
      options_(output::d::PrintOptions::from(compiled.script.options)),
      aggregations_(compiled.script, compiled.generated.keys, symbols_, options_),
      printer_({compiled.script, symbols_, aggregations_, options_, *this}),
      drops_(options_.has_drop_tags) {}

void DtraceConsumer::read() {
  session_.read([this](std::span<const uint8_t> bytes) { take(bytes); });
  console_.flush();
}

output::d::ProbeNames DtraceConsumer::names_of(uint32_t probe) const {
  const kernel::Probe* const found = catalogue_.find(probe);
  if (found == nullptr) return {probe, "", "", "", ""};
  return {probe, found->provider, found->module, found->function, found->name};
}

void DtraceConsumer::take(std::span<const uint8_t> bytes) {
  DRecordHeader header{};
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  switch (header.kind) {
    case DRecordKind::Data:
      if (header.speculation == 0) return print(bytes);
      speculations_[header.speculation].emplace_back(bytes.begin(), bytes.end());
      return;
    case DRecordKind::Commit:
      return commit(header.speculation);
    case DRecordKind::Discard:
      speculations_.erase(header.speculation);
      session_.free_speculation(header.speculation);
      return;
    case DRecordKind::Error:
      return take_error(bytes);
    case DRecordKind::Exit:
      is_over_ = true;
      return;
  }
}

void DtraceConsumer::commit(uint32_t speculation) {
  const auto held = speculations_.find(speculation);
  if (held != speculations_.end()) {
    for (const Record& record : held->second) {
      print(record);
    }
    speculations_.erase(held);
  }
  session_.free_speculation(speculation);
}

void DtraceConsumer::take_error(std::span<const uint8_t> bytes) {
  abi::DErrorRecord error{};
  if (bytes.size() < sizeof error) return;
  std::memcpy(&error, bytes.data(), sizeof error);
  console_.lines(output::d::error_text(error, names_of(error.header.probe)));
}

void DtraceConsumer::print(std::span<const uint8_t> record) {
  DRecordHeader header{};
  std::memcpy(&header, record.data(), sizeof header);
  if (header.clause >= compiled_.generated.records.size()) return;
  printer_.print(record, compiled_.generated.records[header.clause], names_of(header.probe));
}

void DtraceConsumer::refresh(uint32_t aggregation) {
  show(aggregation, session_.aggregate(aggregation));
}

void DtraceConsumer::take_out(uint32_t aggregation) {
  show(aggregation, session_.take(aggregation));
}

void DtraceConsumer::show(uint32_t aggregation, std::vector<kernel::DAggregate> entries) {
  std::vector<output::d::AggregateEntry> snapshot;
  snapshot.reserve(entries.size());
  for (kernel::DAggregate& entry : entries) {
    snapshot.push_back({std::move(entry.key), std::move(entry.cells)});
  }
  aggregations_.take(aggregation, snapshot);
}

void DtraceConsumer::print_aggregations() {
  for (uint32_t i = 0; i < compiled_.script.aggregations.size(); ++i) {
    refresh(i);
  }
  std::string text;
  aggregations_.print_rest(text);
  console_.write(text);
  console_.flush();
}

void DtraceConsumer::report_drops() {
  console_.lines(drops_.report(session_.shared().losses));
}

void DtraceConsumer::run_command(const std::string& command) {
  console_.flush();
  const std::array<const char*, 4> words = {"sh", "-c", command.c_str(), nullptr};
  pid_t pid = 0;
  // The program's own command line, which -w allowed: it is a shell's by the language.
  if (posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(words.data()),
                  environ) == 0) {
    (void)waitpid(pid, nullptr, 0);
  }
}

void DtraceConsumer::set_option(const std::string&, const std::string&) {}

}  // namespace clew::engine
