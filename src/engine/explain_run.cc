// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <fmt/format.h>

#include "engine/explain.h"
#include "engine/join_account.h"
#include "output/format.h"
#include "output/json_value.h"
#include "output/row_sink.h"

namespace clew::engine {
namespace {

class LeftOutRows final : public output::RowSink {
 public:
  void begin(output::Columns, output::RowMode) override {}
  void row(std::span<const aggregate::Value>) override { ++rows_; }
  void end_interval(const output::Interval&) override {}
  void finish(const collect::Losses&) override {}
  [[nodiscard]] uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0;
};

std::string text_of(const JoinAccount& account, uint64_t rows, const collect::Losses& losses) {
  std::string text = "\nrun\n";
  for (const AccountLine& line : account)
    text += line.text + "\n";
  return text + fmt::format("  {:<10} {} rows\n\n", "answer", rows) + output::format_losses(losses);
}

std::string json_of(const JoinAccount& account, uint64_t rows, const collect::Losses& losses) {
  std::string text;
  for (const AccountLine& line : account)
    text += line.json + "\n";
  text += output::json_text({{"run", "answer"}, {"rows", rows}}) + "\n";
  return text + output::json_text({{"summary", output::losses_json(losses)}}) + "\n";
}

}  // namespace

Expected<std::string> explain_run(const Request& request, int stop_descriptor, Notices& notices,
                                  bool json) {
  Request counted = request;
  JoinAccount account;
  collect::Losses losses;
  counted.account = [&](JoinAccount lines, const collect::Losses& lacks) {
    account = std::move(lines);
    losses = lacks;
  };
  LeftOutRows sink;
  CLEW_TRY(run(counted, stop_descriptor, sink, notices));
  return json ? json_of(account, sink.rows(), losses) : text_of(account, sink.rows(), losses);
}

}  // namespace clew::engine
