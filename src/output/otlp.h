// SPDX-License-Identifier: Apache-2.0
// Rows as requests of OTLP (OpenTelemetry Protocol 1.0, "OTLP/HTTP", JSON encoding of
// ExportMetricsServiceRequest): counts and sums are Sums of temporality delta, quantize and its kin
// are Histograms of the same, what does not add up are Gauges. A point's time is its interval, so a
// request that is sent again says the same of the same time.
//
// quantize would look like an ExponentialHistogram, but its buckets begin at powers of two, where
// those of OTLP end there: each power would be counted one bucket off. So all are Histograms, whose
// bounds are exact (metric_buckets.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "output/metric_rows.h"
#include "output/row_sink.h"
#include "output/sinks.h"

namespace clew::output {

struct OtlpRequest {
  std::string body{};
  uint64_t points = 0;
  std::string query{};
  uint64_t revision = 0;  // OtlpAbout::revision
  // The last one of what OtlpSink::set_mark() has told; 0 of others.
  uint64_t mark = 0;
};

// Where requests go.
class OtlpPlace {
 public:
  OtlpPlace() = default;
  OtlpPlace(const OtlpPlace&) = delete;
  OtlpPlace& operator=(const OtlpPlace&) = delete;
  virtual ~OtlpPlace() = default;
  virtual void post(OtlpRequest request) = 0;
  // So many more values cannot be corrected, see MetricRows::uncorrected().
  virtual void uncorrected(uint64_t) {}
  // The last mark of this query, of this revision, that was sent, or is lost.
  [[nodiscard]] virtual std::optional<uint64_t> done(const std::string&, uint64_t) const {
    return {};
  }
  // What waits of this query is not sent: it comes again, or is another's to send.
  virtual void forget(const std::string&) {}
};

struct OtlpAbout {
  std::string query{};    // Its name: metrics are clew.QUERY.COLUMN.
  std::string version{};  // Of Clew.
  uint64_t revision = 0;  // Of a query of a cluster: another one may have its name later.
  std::vector<std::pair<std::string, std::string>> resource{};
  int64_t started_ns = 0;  // Of the time of day, of an answer without intervals.
};

// host.name is this machine, service.name what is traced, where that is one name.
[[nodiscard]] OtlpAbout otlp_about(const About& about, std::string query);
// The same where several machines count.
[[nodiscard]] std::string service_name(const std::vector<std::string>& name_patterns);

class OtlpSink final : public RowSink {
 public:
  // Of one request, so that none is larger than receivers take.
  static constexpr uint64_t kPointsMax = 2'000;
  static constexpr size_t kBytesMax = size_t{1} << 20;

  // The place is borrowed.
  OtlpSink(OtlpAbout about, OtlpPlace& place) : about_(std::move(about)), place_(place) {}

  void begin(Columns columns, RowMode mode) override;
  void row(std::span<const aggregate::Value> values) override { rows_.row(values); }
  void end_interval(const Interval& interval) override;
  void finish(const collect::Losses& losses) override;
  // What is sent next is up to here. `is_known`: it is only remembered, for corrections.
  void set_mark(uint64_t mark, bool is_known) {
    mark_ = mark;
    is_known_ = is_known;
  }

 private:
  struct Points {
    std::string text{};
    uint64_t count = 0;
  };
  void post(const std::vector<MetricRow>& rows);
  void add(const MetricRow& row);
  [[nodiscard]] std::string point_of(const MetricRow& row, const MetricColumn& metric,
                                     const std::string& attributes);
  [[nodiscard]] std::string attributes_of(const std::vector<aggregate::Value>& row) const;
  [[nodiscard]] std::string histogram_of(const MetricRow& row, const MetricColumn& metric);
  void send(bool is_last);

  OtlpAbout about_;
  OtlpPlace& place_;
  MetricRows rows_;
  std::vector<Points> points_;  // By the metrics of the shape.
  std::vector<bool> has_negative_;
  uint64_t count_ = 0;
  size_t bytes_ = 0;
  uint64_t uncorrected_ = 0;
  uint64_t mark_ = 0;
  bool is_known_ = false;
};

}  // namespace clew::output
