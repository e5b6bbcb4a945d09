// SPDX-License-Identifier: Apache-2.0
// For tests of printed records: the layout of a clause with a record of it, and a printer of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "output/d/fake_host.h"
#include "output/d/record.h"
#include "query/d/parse_format.h"

namespace clew::output::d {

inline constexpr std::string_view kHeading = "CPU     ID                    FUNCTION:NAME\n";
inline constexpr std::string_view kBeginRow = "  0      1                           :BEGIN ";
inline constexpr ProbeNames kBegin = {1, "dtrace", "", "", "BEGIN"};

// Builds the layout of a clause together with one record of it.
class Builder {
 public:
  Builder() { bytes_.resize(sizeof(abi::MachineRecordHeader)); }

  Builder& action(query::d::Action action, bool is_executed = true) {
    query::d::RecordedAction& recorded = layout_.actions.emplace_back();
    recorded.action = action;
    recorded.flag_offset_bytes = static_cast<uint32_t>(bytes_.size());
    bytes_.resize(bytes_.size() + 8);
    bytes_[bytes_.size() - 8] = is_executed ? 1 : 0;
    return *this;
  }
  Builder& field(query::d::RecordField field, std::span<const uint8_t> bytes) {
    field.offset_bytes = static_cast<uint32_t>(bytes_.size());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    last().fields.push_back(field);
    return *this;
  }
  Builder& integer(int64_t value, uint32_t size_bytes = 8, bool is_signed = true) {
    return field({.size_bytes = size_bytes, .is_signed = is_signed},
                 bytes_of({static_cast<uint64_t>(value)}));
  }
  Builder& string(std::string_view text) {
    return field({.kind = query::d::FieldKind::String, .size_bytes = 32}, bytes_of(text, 32));
  }
  Builder& memory(std::string_view bytes) {
    return field(
        {.kind = query::d::FieldKind::Bytes, .size_bytes = static_cast<uint32_t>(bytes.size())},
        bytes_of(bytes, bytes.size()));
  }
  Builder& words(query::d::FieldKind kind, const std::vector<uint64_t>& words,
                 query::d::Action action = query::d::Action::None) {
    return field(
        {.kind = kind, .size_bytes = static_cast<uint32_t>(words.size() * 8), .action = action},
        bytes_of(words));
  }
  Builder& format(uint32_t format) {
    last().format = format;
    return *this;
  }
  Builder& of(const std::vector<uint32_t>& aggregations) {
    last().aggregations = aggregations;
    return *this;
  }

  [[nodiscard]] query::d::RecordLayout layout() const {
    query::d::RecordLayout result = layout_;
    result.size_bytes = static_cast<uint32_t>(bytes_.size());
    return result;
  }
  [[nodiscard]] std::vector<uint8_t> record(const abi::MachineRecordHeader& header) const {
    std::vector<uint8_t> result = bytes_;
    std::memcpy(result.data(), &header, sizeof header);
    return result;
  }

 private:
  query::d::RecordedAction& last() { return layout_.actions.back(); }
  query::d::RecordLayout layout_;
  std::vector<uint8_t> bytes_;
};

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    script_.aggregations.emplace_back();
    aggregations_.emplace(script_, std::vector<query::d::KeyLayout>(1), symbols_, options_);
    printer_.emplace(RecordPrinter::Context{script_, symbols_, *aggregations_, options_, host_});
  }

  uint32_t add_format(std::string_view text) {
    script_.formats.push_back(*query::d::parse_format(text, 1, {}));
    return static_cast<uint32_t>(script_.formats.size() - 1);
  }

  void fire(const Builder& builder, const ProbeNames& probe = kBegin, const Firing& firing = {},
            const abi::MachineRecordHeader* next = nullptr) {
    printer_->print(builder.record(firing.header()), builder.layout(), probe, next);
  }
  std::string written() { return std::exchange(host_.log, {}); }
  // Behind the column heading and the start of the row.
  std::string row(const Builder& builder) {
    fire(builder);
    std::string text = written();
    for (const std::string_view start : {kHeading, kBeginRow}) {
      if (text.starts_with(start)) text.erase(0, start.size());
    }
    return text;
  }
  std::string quiet(const Builder& builder) {
    options_.is_quiet = true;
    fire(builder);
    return written();
  }

  query::d::Script script_;
  FakeSymbols symbols_;
  PrintOptions options_;
  FakeHost host_;
  std::optional<Aggregations> aggregations_;
  std::optional<RecordPrinter> printer_;
};

}  // namespace clew::output::d
