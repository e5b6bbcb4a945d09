// SPDX-License-Identifier: Apache-2.0
// A database of SQLite, for questions to an answer. clew(1) says what a value becomes.
//
//   meta       name, value                     the query, versions, how it went
//   columns    number, name, type, unit, role, approximate, table_name
//   rows       interval, the columns of the query; of a D script, its tables by their names
//   intervals  number, begin_ns, end_ns, partial, table_name
//   losses     kind, what, why, count
//
// An interval is one transaction, and so are kRowsInTransaction events: somebody who reads
// meanwhile sees them whole, and what a killed tracer has committed is there.
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <endian.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "output/format.h"
#include "output/formats.h"
#include "output/json_value.h"
#include "output/names.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;

// "Clew", in the header of each file of ours: four bytes, the highest first.
constexpr uint32_t kApplicationId = 0x436C6577;
constexpr int kTablesVersion = 2;
constexpr uint32_t kRowsInTransaction = 1000;
// How long somebody who reads the file may keep us waiting, at the begin and at the end.
constexpr int kPatienceMs = 5000;

// The database file format, section 1.3: what the file begins with, and where its application id
// is.
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr size_t kApplicationIdOffset = 68;
constexpr size_t kHeaderBytes = 100;

// Makes the file, if there is none. One of anybody else stays as it is.
Expected<void> check_file(const std::string& file) {
  const FileDescriptor descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!descriptor.valid()) {
    return fail(ErrorCode::Io, fmt::format("cannot write {}: {}", file, error_text(errno)));
  }
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::Refused, fmt::format("{} is no file, which a database needs", file));
  }
  if (status.st_size == 0) return {};
  std::array<char, kHeaderBytes> header{};
  const ssize_t size = pread(descriptor.get(), header.data(), header.size(), 0);
  uint32_t id = 0;
  std::memcpy(&id, header.data() + kApplicationIdOffset, sizeof id);
  const bool is_ours = size == static_cast<ssize_t>(header.size()) &&
                       std::equal(kMagic.begin(), kMagic.end(), header.begin()) &&
                       be32toh(id) == kApplicationId;
  if (is_ours) return {};
  return fail(ErrorCode::Refused,
              fmt::format("{} is there, and no database that clew wrote: it is not overwritten; "
                          "remove it, or name another file",
                          file));
}

struct Closes {
  void operator()(sqlite3* database) const { (void)sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { (void)sqlite3_finalize(statement); }
};

// An open database. The first error sticks: after it, calls do nothing.
class Database {
 public:
  explicit Database(const std::string& file) {
    sqlite3* database = nullptr;
    check(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                          nullptr),
          database);
    database_.reset(database);
  }

  void run(const std::string& sql) {
    if (failed()) return;
    check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }
  // False: somebody reads the file at this moment, and the transaction stays open.
  bool commit() {
    if (failed()) return true;
    const int result = sqlite3_exec(database_.get(), "COMMIT", nullptr, nullptr, nullptr);
    if (result == SQLITE_BUSY) return false;
    check(result);
    return true;
  }
  void wait_for_readers(int milliseconds) {
    if (!failed()) check(sqlite3_busy_timeout(database_.get(), milliseconds));
  }
  // Takes out whatever is there.
  void empty() {
    if (failed()) return;
    check(sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_RESET_DATABASE, 1, nullptr));
    run("VACUUM");
    if (!failed())
      check(sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_RESET_DATABASE, 0, nullptr));
  }
  [[nodiscard]] int64_t last_row() const { return sqlite3_last_insert_rowid(database_.get()); }
  [[nodiscard]] sqlite3* get() const { return database_.get(); }

  void check(int result) { check(result, database_.get()); }
  [[nodiscard]] bool failed() const { return !problem_.empty(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void check(int result, sqlite3* database) {
    if (result != SQLITE_OK && result != SQLITE_DONE && !failed()) {
      problem_ = sqlite3_errmsg(database);
    }
  }

  std::unique_ptr<sqlite3, Closes> database_;
  std::string problem_;
};

// A statement that is run again and again, with values of its own each time.
class Insert {
 public:
  Insert() = default;
  Insert(Database& database, const std::string& sql) : database_(&database) {
    if (database.failed()) return;
    sqlite3_stmt* statement = nullptr;
    database.check(sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &statement, nullptr));
    statement_.reset(statement);
  }

  Insert& add(std::monostate) { return bound(sqlite3_bind_null, next_++); }
  Insert& add(int64_t number) { return bound(sqlite3_bind_int64, next_++, number); }
  // SQLite's own integers have a sign. As decimal digits it would be rounded.
  Insert& add(uint64_t number) {
    if (number <= uint64_t{std::numeric_limits<int64_t>::max()})
      return add(static_cast<int64_t>(number));
    return add(fmt::format("0x{:x}", number));
  }
  Insert& add(double number) { return bound(sqlite3_bind_double, next_++, number); }
  // What is no text to SQLite is a blob, byte for byte.
  Insert& add(const std::string& text) {
    const int at = next_++;
    const auto size = static_cast<int>(text.size());
    const bool is_text = is_utf8(text) && text.find('\0') == std::string::npos;
    if (is_text) return bound(sqlite3_bind_text, at, text.data(), size, SQLITE_TRANSIENT);
    return bound(sqlite3_bind_blob, at, text.data(), size, SQLITE_TRANSIENT);
  }
  Insert& add(const char* text) { return add(std::string(text)); }

  void run() {
    next_ = 1;
    if (statement_ == nullptr || database_->failed()) return;
    database_->check(sqlite3_step(statement_.get()));
    (void)sqlite3_reset(statement_.get());
  }

 private:
  template <typename Function, typename... Arguments>
  Insert& bound(Function function, int at, Arguments... arguments) {
    if (statement_ != nullptr && !database_->failed())
      database_->check(function(statement_.get(), at, arguments...));
    return *this;
  }

  Database* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Closes> statement_;
  int next_ = 1;  // Of its parameters.
};

const char* sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::Integer:
    case ColumnType::Unsigned:
    case ColumnType::Boolean:
    case ColumnType::Time:
      return " INTEGER";
    case ColumnType::Float:
      return " REAL";
    case ColumnType::Enum:
      return "";
    case ColumnType::String:
    case ColumnType::Address:
    case ColumnType::Histogram:
    case ColumnType::TopList:
    case ColumnType::Stack:
    case ColumnType::Record:
      return " TEXT";
  }
  return "";
}

struct AddValue {
  Insert& insert;
  ColumnType type;

  void operator()(uint64_t number) const {
    if (type == ColumnType::Address) {
      insert.add(fmt::format("0x{:x}", number));
    } else {
      insert.add(number);
    }
  }
  void operator()(const aggregate::Stack& stack) const {
    insert.add(format_value(stack, Column{.type = ColumnType::Stack}));
  }
  void operator()(const aggregate::Histogram& histogram) const {
    insert.add(json_text(to_json(histogram, type)));
  }
  void operator()(const aggregate::TopList& list) const {
    insert.add(json_text(to_json(list, type)));
  }
  template <typename Simple>
  void operator()(const Simple& simple) const {
    insert.add(simple);
  }
};

std::string lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// Of columns, or of tables. Case makes no other name.
class Names {
 public:
  explicit Names(std::set<std::string> taken) : taken_(std::move(taken)) {}

  std::string add(const std::string& wanted) {
    std::string name = printable(wanted);
    for (uint32_t i = 2; !taken_.insert(lower_case(name)).second; ++i)
      name = fmt::format("{}_{}", printable(wanted), i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name)
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

class SqliteSink final : public RowSink {
 public:
  SqliteSink(About about, const std::string& file)
      : about_(std::move(about)), file_(file), database_(file) {}

  void begin(std::span<const Column> columns, RowMode mode) override {
    const TableShape rows{
        .name = "rows", .columns = {columns.begin(), columns.end()}, .mode = mode};
    begin_tables({&rows, 1});
    meta("mode", mode == RowMode::Table ? "table" : "events");
    commit();
  }

  void begin_tables(std::span<const TableShape> tables) override {
    has_begun_ = true;
    database_.wait_for_readers(kPatienceMs);
    // What was committed outlives the tracer; a loss of power it need not outlive.
    database_.run("PRAGMA synchronous = OFF");
    database_.empty();
    database_.run("BEGIN IMMEDIATE");
    database_.run(fmt::format("PRAGMA application_id = {}", kApplicationId));
    make_tables();
    for (const TableShape& table : tables)
      add_table(table);
    describe_session();
    commit();
    database_.wait_for_readers(0);
  }

  void choose(size_t table) override {
    CLEW_ASSERT(table < tables_.size());
    current_ = table;
  }

  void row(std::span<const Value> values) override {
    Table& table = tables_[current_];
    CLEW_ASSERT(values.size() == table.types.size());
    for (size_t i = 0; i < values.size(); ++i)
      std::visit(AddValue{table.insert, table.types[i]}, values[i]);
    table.insert.run();
    table.last_row = database_.last_row();
    if (++rows_ % kRowsInTransaction == 0 && table.mode == RowMode::Stream) commit();
  }

  // Whose rows these were is known at the end of an interval.
  void end_interval(const Interval& interval) override {
    Table& table = tables_[current_];
    const auto number = static_cast<int64_t>(interval.number);
    const bool is_known = interval.end_ns != 0;
    Insert insert(database_, "INSERT INTO intervals VALUES (?, ?, ?, ?, ?)");
    insert.add(number);
    for (const int64_t moment : {interval.begin_ns, interval.end_ns})
      is_known ? insert.add(moment) : insert.add(std::monostate{});
    insert.add(int64_t{interval.partial ? 1 : 0}).add(table.name).run();
    if (table.mode == RowMode::Table) {
      Insert(database_,
             fmt::format("UPDATE {} SET interval = ? WHERE rowid > ?", sql_name(table.name)))
          .add(number)
          .add(table.rows_before)
          .run();
      table.rows_before = table.last_row;
    }
    commit();
  }

  void finish(const collect::Losses& losses) override {
    write_losses(losses);
    meta("sites", losses.sites);
    meta("attach_ms", losses.attach_ms);
    meta("stopped_ms", losses.stopped_ms);
    if (losses.window_ms == 0) return;
    meta("processes", losses.processes);
    meta("window_ms", losses.window_ms);
  }

  [[nodiscard]] bool failed() const override { return database_.failed(); }

  Expected<void> close(const Error* error) override {
    if (has_begun_) {
      meta("state", error == nullptr ? "answered" : "failed");
      if (error != nullptr) meta("error", error->message);
      database_.wait_for_readers(kPatienceMs);
      if (!database_.commit()) {
        return fail(
            ErrorCode::Io,
            fmt::format("cannot write the end of the answer to {}: it is being read", file_));
      }
    }
    if (!database_.failed()) return {};
    return fail(ErrorCode::Io,
                fmt::format("cannot write the answer to {}: {}", file_, database_.problem()));
  }

 private:
  struct Table {
    std::string name;
    RowMode mode = RowMode::Table;
    std::vector<ColumnType> types{};
    Insert insert{};
    int64_t last_row = 0;     // The rowid of the last one.
    int64_t rows_before = 0;  // The same, of the last one of earlier intervals.
  };

  void make_tables();
  void add_table(const TableShape& shape);
  void describe_session();
  void write_losses(const collect::Losses& losses);

  template <typename Content>
  void meta(const char* name, const Content& content) {
    Insert(database_, "INSERT OR REPLACE INTO meta VALUES (?, ?)").add(name).add(content).run();
  }

  // While somebody reads, the transaction goes on.
  void commit() {
    if (database_.commit()) database_.run("BEGIN IMMEDIATE");
  }

  About about_;
  std::string file_;
  Database database_;
  Names names_{{"meta", "columns", "intervals", "losses"}};  // Of tables.
  std::vector<Table> tables_;
  size_t current_ = 0;  // Of them.
  uint64_t rows_ = 0;   // Of all.
  bool has_begun_ = false;
};

void SqliteSink::make_tables() {
  database_.run("CREATE TABLE meta (name TEXT PRIMARY KEY, value)");
  database_.run(
      "CREATE TABLE columns (number INTEGER, name TEXT, type TEXT, unit TEXT, role TEXT, "
      "approximate INTEGER, table_name TEXT, PRIMARY KEY (table_name, number))");
  database_.run(
      "CREATE TABLE intervals (number INTEGER PRIMARY KEY, begin_ns INTEGER, end_ns INTEGER, "
      "partial INTEGER, table_name TEXT)");
  database_.run("CREATE TABLE losses (kind TEXT, what TEXT, why TEXT, count INTEGER)");
}

void SqliteSink::add_table(const TableShape& shape) {
  const bool is_reserved = lower_case(shape.name).starts_with("sqlite_");  // SQLite's own.
  Table& table = tables_.emplace_back(
      Table{.name = names_.add(is_reserved ? "_" + shape.name : shape.name), .mode = shape.mode});
  std::string definition = fmt::format("CREATE TABLE {} (interval INTEGER", sql_name(table.name));
  std::string values = fmt::format("INSERT INTO {} VALUES (NULL", sql_name(table.name));
  Insert insert(database_, "INSERT INTO columns VALUES (?, ?, ?, ?, ?, ?, ?)");
  Names names({"interval", "rowid", "oid", "_rowid_"});  // SQLite's own stay its own.
  for (const Column& column : shape.columns) {
    table.types.push_back(column.type);
    const std::string name = names.add(column.name);
    definition += ", " + sql_name(name) + sql_type(column.type);
    values += ", ?";
    insert.add(uint64_t{table.types.size()}).add(name).add(name_of(column.type));
    insert.add(name_of(column.unit)).add(name_of(column.role));
    insert.add(int64_t{column.approximate ? 1 : 0}).add(table.name).run();
  }
  database_.run(definition + ")");
  table.insert = Insert(database_, values + ")");
}

void SqliteSink::describe_session() {
  Json targets = Json::array();
  for (const auto& [kind, value] : about_.targets)
    targets.push_back({{kind, value}});
  meta("tables_version", int64_t{kTablesVersion});
  meta("clew", about_.version);
  meta("query", about_.query);
  meta("targets", json_text(targets));
  meta("host", about_.host);
  meta("started_ns", about_.started_ns);
  meta("state", "running");
}

void SqliteSink::write_losses(const collect::Losses& losses) {
  Insert insert(database_, "INSERT INTO losses VALUES (?, ?, ?, ?)");
  const auto add = [&insert](const char* kind, const std::string& what, const std::string& why,
                             uint64_t count) {
    insert.add(kind).add(what).add(why).add(count).run();
  };
  for (const auto& [cause, count] : losses.missed)
    add("missed", cause, std::string(collect::describe_cause(cause, count)), count);
  for (const auto& [cause, count] : losses.dropped)
    add("dropped", cause, std::string(collect::describe_cause(cause, count)), count);
  for (const std::string& source : losses.lost)
    add("lost", "", source, 1);
  for (const collect::DisarmedProbe& each : losses.disarmed)
    add("disarmed", each.probe, collect::describe(each), each.exhausted);
  for (const collect::RefusedSite& site : losses.refused)
    add("refused", site.function, site.kind + ": " + site.reason, 1);
  for (const collect::RefusedSite& site : losses.uprobes)
    add("uprobe", site.function, site.kind + ": " + site.reason, 1);
  for (const collect::LeftOut& process : losses.left_out)
    add("left_out", fmt::format("process {}", process.process), process.reason, 1);
  for (const std::string& function : losses.left_by_jump)
    add("left_by_jump", function, "may leave by a jump to another function", 1);
  constexpr auto kCausal = "requests, unjoined events, messages that came again, or edges known so";
  for (const auto& [how, count] : losses.causal)
    add("by_cause", how, kCausal, count);
  if (losses.open.count != 0)
    add("open_calls", "", "had not returned at the end", losses.open.count);
}

}  // namespace

Expected<std::unique_ptr<RowSink>> open_sqlite_sink(const SinkOptions& options,
                                                    const std::string& file) {
  CLEW_TRY(check_file(file));
  return std::make_unique<SqliteSink>(options.about, file);
}

}  // namespace clew::output
