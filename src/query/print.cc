// SPDX-License-Identifier: Apache-2.0
// Query -> text, clause by clause. Expressions are in print_expression.cc.
#include "query/print.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "query/fields.h"
#include "query/parser.h"
#include "query/print_expression.h"
#include "query/recording_fields.h"
#include "query/token.h"
#include "query/window.h"

namespace clew::query {
namespace {

bool is_plain_name(std::string_view name) {
  bool is_good = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  for (const char c : name) {
    is_good = is_good && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_');
  }
  return is_good && !is_clause_word(name) && !is_type_word(name);
}

std::string print_name(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : print_string(name);
}

// Where the name of a column stands by itself.
std::string print_column(std::string_view name) {
  return name == "of" ? print_string(name) : print_name(name);
}

std::string print_vectors(const Query& query) {
  const auto name = [&query](uint16_t column) { return print_column(query.columns[column].name); };
  std::string by;
  for (const uint16_t column : query.clustering->by)
    by += (by.empty() ? "" : ", ") + name(column);
  return fmt::format("by {}, of {}, value {}", by, name(query.clustering->of),
                     name(query.clustering->value));
}

std::string_view method_of(SourceKind kind) {
  if (kind == SourceKind::Return || kind == SourceKind::KernelReturn) return "Return";
  if (kind == SourceKind::Exception) return "Exception";
  if (kind == SourceKind::Offset) return "Offset";
  if (kind == SourceKind::Line) return "Line";
  return "Function";
}

std::string print_call(const Source& source) {
  const std::string function =
      source.module.empty() ? source.function : source.module + "!" + source.function;
  switch (source.kind) {
    case SourceKind::Entry:
    case SourceKind::Return:
    case SourceKind::Exception:
    case SourceKind::Usdt:
    case SourceKind::Syscall:
    case SourceKind::SyscallReturn:
    case SourceKind::Tracepoint:
      return print_string(function);
    case SourceKind::Kernel:
    case SourceKind::KernelReturn:
      return source.scope == Scope::Session ? print_string(function)
                                            : "kernel, " + print_string(function);
    case SourceKind::Offset:
      return fmt::format("{}, {:#x}", print_string(function), source.offset_bytes);
    case SourceKind::Line:
      return print_string(fmt::format("{}:{}", source.file, source.line));
    case SourceKind::Tick:
    case SourceKind::Profile:
      return print_duration(source.period_ns);
    case SourceKind::Recording:
      return print_string(source.file);
    case SourceKind::Begin:
    case SourceKind::End:
      break;
  }
  return "";
}

std::string print_scope(const Source& source) {
  switch (source.scope) {
    case Scope::Session:
      return "";
    case Scope::Process: {
      const bool is_pid = source.process.find_first_not_of("0123456789") == std::string::npos;
      return fmt::format("process({}).", is_pid ? source.process : print_string(source.process));
    }
    case Scope::Machine:
      return "machine.";
    case Scope::Cluster:
      return "cluster.";
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const Query& query) : query_(query) {}

  std::string run() {
    if (!query_.clustering) return whole();
    Query clustered = query_;
    clustered.clustering.reset();
    return clusters(*query_.clustering, Printer(clustered).whole());
  }

 private:
  std::string whole() {
    text_ = "from e in ";
    if (is_outstanding(query_)) {
      text_ += outstanding();
    } else {
      text_ += sources(query_.sources, query_.inputs);
      for (const Join& each : query_.joins)
        line(join(each));
    }
    if (query_.least_cause)
      line(fmt::format("with cause >= {}", causal::name_of(*query_.least_cause)));
    for (const NamedExpression& let : query_.lets) {
      line(fmt::format("let {} = {}", let.name, print_expression(let.expression, query_)));
    }
    for (const Expression& condition : query_.where) {
      line("where " + print_expression(condition, query_));
    }
    groups();
    line("select " + items(query_.columns));
    for (const Expression& condition : query_.having) {
      line("where " + print_expression(condition, query_));
    }
    tail();
    return std::move(text_);
  }

  // What is computed over their rows reads as if these were those of a joined query.
  [[nodiscard]] static Query rows_of(const Clustering& clustering) {
    Query row;
    Query rows;
    for (const std::string& name : clustering.names)
      rows.columns.push_back({.name = name, .expression = {}});
    for (size_t i = 0; i < rows.columns.size(); ++i) {
      Expression column;
      column.kind = ExpressionKind::JoinColumn;
      column.stream = 1;
      column.index = static_cast<uint16_t>(i);
      row.values.push_back({.name = "", .expression = std::move(column)});
    }
    Join join;
    join.name = "c";
    join.subquery.push_back(std::move(rows));
    row.joins.push_back(std::move(join));
    row.columns = clustering.columns;
    row.order = clustering.order;
    row.take = clustering.take;
    return row;
  }

  [[nodiscard]] std::string clusters(const Clustering& clustering,
                                     const std::string& clustered) const {
    const Query rows = rows_of(clustering);
    Printer said(rows);
    said.text_ = fmt::format("from c in kmeans({}, (\n{}\n), {})", clustering.clusters, clustered,
                             print_vectors(query_));
    for (const Expression& condition : clustering.having)
      said.line("where " + print_expression(condition, rows));
    said.line("select " + said.items(rows.columns));
    said.tail();
    return std::move(said.text_);
  }

  void line(std::string_view text) {
    text_ += '\n';
    text_ += text;
  }

  // The pane is no key that anybody has written.
  void groups() {
    if (query_.shape != Shape::Groups) return;
    std::span<const NamedExpression> keys = query_.values;
    if (query_.window) keys = keys.subspan(1);
    if (!keys.empty()) line("groupby " + items(keys));
    if (query_.window) line(print(*query_.window));
  }

  [[nodiscard]] std::string items(std::span<const NamedExpression> all) const {
    std::string result;
    for (const NamedExpression& item : all) {
      if (!result.empty()) result += ", ";
      result +=
          fmt::format("{} as {}", print_expression(item.expression, query_), print_name(item.name));
    }
    return result;
  }

  [[nodiscard]] std::string sources(const std::vector<Source>& all,
                                    const std::vector<Input>& inputs) const {
    std::string result;
    for (const Source& source : all) {
      if (!result.empty()) result += ", ";
      result += print(source);
      if (!source.label.empty()) result += " as " + print_string(source.label);
      std::string exports;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!exports.empty()) exports += ", ";
        exports +=
            fmt::format("{} = {}", input_name(inputs, i), print_bare(source.inputs[i], query_));
      }
      if (!exports.empty()) result += fmt::format(" {{ {} }}", exports);
    }
    return result;
  }

  [[nodiscard]] std::string join(const Join& join) const {
    std::string what = join.subquery.empty() ? sources(join.sources, join.inputs)
                                             : fmt::format("(\n{}\n)", print(join.subquery[0]));
    switch (join.filter) {
      case JoinFilter::All:
        break;
      case JoinFilter::First:
        what = fmt::format("First({})", what);
        break;
      case JoinFilter::MostRecent:
        what = fmt::format("MostRecent({})", what);
        break;
      case JoinFilter::FirstN:
        what = fmt::format("FirstN({}, {})", join.count, what);
        break;
      case JoinFilter::MostRecentN:
        what = fmt::format("MostRecentN({}, {})", join.count, what);
        break;
    }
    const std::string on =
        fmt::format("{}join {} in {} on ", join.left ? "left " : "", join.name, what);
    if (join.within) return on + within(*join.within);
    const std::string after = join.after == 0 ? "e" : query_.joins[join.after - 1U].name;
    return fmt::format("{}{} -> {}", on, join.name, after);
  }

  // That keys are of one process is not said.
  [[nodiscard]] std::string outstanding() const {
    const Within& within = *query_.joins[0].within;
    std::string keys;
    bool is_across = true;
    for (size_t i = 0; i < within.joined.size(); ++i) {
      const std::string begun = print_outstanding_key(within.other[i], query_);
      const std::string ended = print_outstanding_key(within.joined[i], query_);
      const bool is_pid = i == 0 && begun == "pid" && ended == "pid";
      is_across = is_across && !is_pid;
      if (is_pid && within.joined.size() > 1) continue;
      keys += fmt::format("{}{} equals {}", keys.empty() ? "" : ", ", begun, ended);
    }
    const std::string one_in = within.one_in == 1 ? "" : fmt::format(" one in {}", within.one_in);
    return fmt::format("outstanding({} until {} on {}{}){}", sources(query_.sources, query_.inputs),
                       sources(query_.joins[0].sources, query_.joins[0].inputs), keys,
                       is_across ? " across processes" : "", one_in);
  }

  [[nodiscard]] std::string within(const Within& within) const {
    std::string keys;
    for (size_t i = 0; i < within.joined.size(); ++i) {
      if (i != 0) keys += " and ";
      keys += fmt::format("{} equals {}", print_join_key(within.joined[i], query_),
                          print_join_key(within.other[i], query_));
    }
    constexpr std::array<std::string_view, 3> kSides = {"", " before", " after"};
    return fmt::format("{} within {}{}", keys, print_duration(within.ns),
                       kSides[static_cast<size_t>(within.side)]);
  }

  void tail() {
    std::string order;
    for (const OrderBy& by : query_.order) {
      if (!order.empty()) order += ", ";
      order += print_expression(by.expression, query_);
      if (by.descending) order += " descending";
    }
    if (!order.empty()) line("orderby " + order);
    if (query_.including_open) line("including open");
    if (query_.take) line(fmt::format("take {}", *query_.take));
    if (query_.every_ns) line("every " + print_duration(*query_.every_ns));
    if (query_.for_ns) line("for " + print_duration(*query_.for_ns));
    if (query_.for_events) line(fmt::format("for {} events", *query_.for_events));
  }

  const Query& query_;
  std::string text_;
};

}  // namespace

std::string print(const Source& source) {
  const bool is_scoped = source.scope != Scope::Session;
  const std::string_view name = is_scoped ? method_of(source.kind) : name_of(source.kind);
  const bool is_recording = source.kind == SourceKind::Recording;
  return fmt::format("{}{}({}){}{}", print_scope(source), name, print_call(source),
                     is_recording ? "." : "", is_recording ? name_of(source.recorded) : "");
}

std::string print(const TimeWindow& window) {
  const std::string size = print_duration(window.size_ns);
  std::string text = "window tumbling " + size;
  if (window.kind == WindowKind::Session) {
    text = "window session " + size;
  } else if (window.step_ns != window.size_ns) {
    text = fmt::format("window hopping {} by {}", size, print_duration(window.step_ns));
  }
  if (window.late_ns != kLateUsualNs) text += " late " + print_duration(window.late_ns);
  return text;
}

std::string print_clusters(const Query& query) {
  return fmt::format("kmeans({}, …, {}), of all rows at the end", query.clustering->clusters,
                     print_vectors(query));
}

std::string print(const Query& query) {
  return Printer(query).run();
}

std::string print(const Expression& expression, const Query& query) {
  return print_expression(expression, query);
}

std::string print_duration(uint64_t ns) {
  struct Scale {
    std::string_view name;
    uint64_t ns;
  };
  constexpr std::array<Scale, 5> kScales = {{{"h", 3'600'000'000'000},
                                             {"m", 60'000'000'000},
                                             {"s", 1'000'000'000},
                                             {"ms", 1'000'000},
                                             {"us", 1'000}}};
  for (const Scale& scale : kScales) {
    if (ns != 0 && ns % scale.ns == 0) return fmt::format("{}{}", ns / scale.ns, scale.name);
  }
  return fmt::format("{}ns", ns);
}

}  // namespace clew::query
