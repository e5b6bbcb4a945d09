// SPDX-License-Identifier: Apache-2.0
#include "cmd/metric_places.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "metrics/push_place.h"
#include "output/metric_rows.h"

namespace clew::cmd {

void declare_metrics(CLI::App& app, MetricArguments& arguments) {
  CLI::Option* const otlp =
      app.add_option("--otlp", arguments.otlp,
                     "push what is counted to a receiver of OpenTelemetry: http://HOST:4318");
  app.add_option("--otlp-header", arguments.headers,
                 "a header for it: NAME=VALUE, or NAME=@FILE for a secret; may be given several "
                 "times; OTEL_EXPORTER_OTLP_HEADERS has more")
      ->allow_extra_args(false)
      ->needs(otlp);
  app.add_option("--prometheus", arguments.prometheus,
                 "an address where Prometheus fetches what is counted: 127.0.0.1:9464");
}

Expected<std::unique_ptr<metrics::OtlpPush>> open_push(const MetricArguments& arguments) {
  if (arguments.otlp.empty()) return std::unique_ptr<metrics::OtlpPush>();
  const char* const environment = secure_getenv("OTEL_EXPORTER_OTLP_HEADERS");
  return std::make_unique<metrics::OtlpPush>(CLEW_TRY(metrics::parse_push_place(
      arguments.otlp, arguments.headers, environment == nullptr ? "" : environment)));
}

std::string metric_query_name(const std::string& text_name) {
  std::string name = text_name.substr(text_name.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  return name.empty() ? "query" : name;
}

// Tells what became of requests as rows come.
class MetricPlaces::Pushed final : public output::RowSink {
 public:
  Pushed(std::unique_ptr<metrics::OtlpPush> push, output::OtlpAbout about, output::ByteSink& notes)
      : push_(std::move(push)), sink_(std::move(about), *push_), notes_(notes) {}

  void begin(output::Columns columns, output::RowMode mode) override { sink_.begin(columns, mode); }
  void row(std::span<const aggregate::Value> values) override { sink_.row(values); }
  void end_interval(const output::Interval& interval) override { sink_.end_interval(interval); }
  void finish(const collect::Losses& losses) override { sink_.finish(losses); }
  void flush() override { tell(); }
  Expected<void> end() {
    auto closed = push_->close(kPushPatienceNs);
    tell();
    return closed;
  }

 private:
  void tell() {
    for (const std::string& note : push_->take_notes())
      notes_.write(fmt::format("clew: warning: {}\n", note));
    notes_.flush();
  }

  std::unique_ptr<metrics::OtlpPush> push_;
  output::OtlpSink sink_;
  output::ByteSink& notes_;
};

class MetricPlaces::Fetched final : public output::RowSink {
 public:
  Fetched(std::unique_ptr<metrics::Server> server, const std::string& name)
      : server_(std::move(server)), rows_(name) {
    server_->show("");
  }

  void begin(output::Columns columns, output::RowMode mode) override { rows_.begin(columns, mode); }
  void row(std::span<const aggregate::Value> values) override { rows_.row(values); }
  void end_interval(const output::Interval& interval) override {
    rows_.end_interval(interval);
    server_->show(rows_.text());
  }
  void finish(const collect::Losses& losses) override { rows_.finish(losses); }

 private:
  std::unique_ptr<metrics::Server> server_;
  output::PrometheusRows rows_;
};

MetricPlaces::MetricPlaces() = default;
MetricPlaces::~MetricPlaces() = default;

Expected<void> MetricPlaces::open(const MetricArguments& arguments, const output::About& about,
                                  const std::string& name, output::ByteSink& notes) {
  if (auto push = CLEW_TRY(open_push(arguments)))
    pushed_ = std::make_unique<Pushed>(std::move(push), output::otlp_about(about, name), notes);
  if (arguments.prometheus.empty()) return {};
  auto server = CLEW_TRY(metrics::Server::start(arguments.prometheus));
  notes.write(fmt::format("clew: metrics are at {}\n", server->url()));
  notes.flush();
  fetched_ = std::make_unique<Fetched>(std::move(server), name);
  return {};
}

std::vector<output::RowSink*> MetricPlaces::sinks() const {
  std::vector<output::RowSink*> sinks;
  if (pushed_) sinks.push_back(pushed_.get());
  if (fetched_) sinks.push_back(fetched_.get());
  return sinks;
}

Expected<void> MetricPlaces::accept(output::Columns columns) const {
  if (pushed_) CLEW_TRY(output::check_metrics("--otlp", columns));
  if (fetched_) CLEW_TRY(output::check_metrics("--prometheus", columns));
  return {};
}

std::vector<Error> MetricPlaces::close() {
  std::vector<Error> errors;
  if (!pushed_) return errors;
  if (auto closed = pushed_->end(); !closed) errors.push_back(std::move(closed).error());
  return errors;
}

}  // namespace clew::cmd
