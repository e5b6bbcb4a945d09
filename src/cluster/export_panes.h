// SPDX-License-Identifier: Apache-2.0
// What a root exports as it gives it: standing queries as requests of OTLP, and windows, which are
// put together here, as metrics of Prometheus.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/answered_rows.h"
#include "cluster/given_panes.h"
#include "output/fan_out.h"
#include "output/otlp.h"
#include "output/prometheus.h"

namespace clew::cluster {

struct ExportOptions {
  output::OtlpPlace* otlp = nullptr;  // Borrowed. Null: nothing is pushed.
  bool with_windows = false;          // For metrics().
  std::string version{};              // Of Clew.
};

class ExportPanes final : public GivenPanes {
 public:
  explicit ExportPanes(ExportOptions options) : options_(std::move(options)) {}

  void take(const GivenPane& given) override;
  void end(const std::string& query) override;
  void forget(const std::string& query) override;
  [[nodiscard]] std::optional<Pane> done(const std::string& query) const override;
  // Nothing of any query comes any more.
  void finish();
  // Of queries with windows, for Prometheus.
  [[nodiscard]] std::string metrics() const;
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct One {
    uint64_t revision = 0;
    std::unique_ptr<output::OtlpSink> otlp{};
    std::unique_ptr<output::PrometheusRows> windows{};
    std::unique_ptr<output::FanOut> sinks{};
    std::unique_ptr<AnsweredRows> rows{};  // Null: there is nothing to export.
  };
  One& known(const GivenPane& given);
  Expected<void> begin(One& one, const GivenPane& given);

  ExportOptions options_;
  std::map<std::string, One> by_query_;
  std::vector<std::string> notes_;
};

}  // namespace clew::cluster
