// SPDX-License-Identifier: Apache-2.0
// Folded stacks, the form that tools for flame graphs read: "main;serve;read 12", the outermost
// call first, a line for each stack, its number summed up over the whole session. What an answer
// lacks goes to the notes.
#include <string>

#include <fmt/format.h>

#include "output/folding.h"
#include "output/format.h"
#include "output/formats.h"

namespace clew::output {
namespace {

class FoldedSink final : public RowSink {
 public:
  FoldedSink(ByteSink& bytes, ByteSink& notes) : bytes_(bytes), notes_(notes) {}

  void begin(Columns columns, RowMode) override { folding_.begin(columns); }
  void row(std::span<const aggregate::Value> values) override { folding_.add(values); }
  void end_interval(const Interval&) override {}

  void finish(const collect::Losses& losses) override {
    for (const auto& [frames, weight] : folding_.stacks())
      bytes_.write(fmt::format("{} {}\n", fmt::join(frames, ";"), weight));
    notes_.write(folding_.left_out() + format_losses(losses));
  }

  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override {
    bytes_.flush();
    notes_.flush();
  }

 private:
  ByteSink& bytes_;
  ByteSink& notes_;
  Folding folding_;
};

}  // namespace

std::unique_ptr<RowSink> make_folded_sink(const SinkOptions&, ByteSink& bytes, ByteSink& notes) {
  return std::make_unique<FoldedSink>(bytes, notes);
}

}  // namespace clew::output
