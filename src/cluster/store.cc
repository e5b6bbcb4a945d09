// SPDX-License-Identifier: Apache-2.0
// A database of SQLite with a write-ahead log, which readers do not wait for:
//
//   query    id, want, phase, answered, schema, begun, given, lost, refused
//   pane     query, pane, version, cells         whole tables, of what is open and of late ones
//   total    query, cells
//   node     query, node, boot_id, start_ns, first, mark, bits, losses
//   dropped  query, node, first, last            panes that the node had no room to keep
//   exported query, pane                         up to which others have it
//   forgotten query, pane                        up to which panes are not kept
#include "cluster/store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr int kApplicationId = 0x436C6372;  // "Clcr"
constexpr int kTablesVersion = 3;

constexpr const char* kTables =
    "create table query(id text primary key, want blob, lost text, phase int, answered text,"
    " schema blob, begun int, given int, refused text) without rowid;"
    "create table pane(query text, pane int, version int, cells blob, primary key(query, pane));"
    "create table total(query text primary key, cells blob);"
    "create table node(query text, node text, boot_id blob, start_ns int, first int, mark int,"
    " bits int, losses blob, primary key(query, node, boot_id, start_ns)) without rowid;"
    "create table dropped(query text, node text, first int, last int,"
    " primary key(query, node, first, last)) without rowid;"
    "create table exported(query text primary key, pane int) without rowid;"
    "create table forgotten(query text primary key, pane int) without rowid;";

constexpr int kPagesAtOnce = 1'000;  // Of 4 KiB.

struct Closes {
  void operator()(sqlite3* database) const { (void)sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { (void)sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Closes>;

}  // namespace

// An open database. The first error sticks until it is taken: after it, calls do nothing.
class Store::Database {
 public:
  Database(std::string file, int flags) : file_(std::move(file)) {
    sqlite3* database = nullptr;
    const int result =
        sqlite3_open_v2(file_.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(database);
    check(result);
    (void)sqlite3_busy_timeout(database, 5000);
  }

  void run(const char* sql) {
    if (problem_.empty()) check(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr));
  }
  // Null after an error.
  Statement prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (problem_.empty()) check(sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr));
    return Statement(statement);
  }
  // True: there is a row.
  bool step(sqlite3_stmt* statement) {
    if (!problem_.empty()) return false;
    const int result = sqlite3_step(statement);
    if (result != SQLITE_ROW) check(result);
    return result == SQLITE_ROW;
  }
  int64_t number_of(const char* sql) {
    const Statement statement = prepare(sql);
    return step(statement.get()) ? sqlite3_column_int64(statement.get(), 0) : 0;
  }
  void begin() {
    if (!is_in_transaction()) run("begin immediate");
  }
  Expected<void> commit() {
    if (is_in_transaction()) run("commit");
    if (failed()) return take_problem();
    return {};
  }
  [[nodiscard]] bool failed() const { return !problem_.empty(); }
  // Nothing of what it was part of stays: what is written next is a transaction of its own.
  tl::unexpected<Error> take_problem() {
    auto failed = fail(ErrorCode::Io, fmt::format("{}: {}", file_, std::exchange(problem_, {})));
    if (is_in_transaction()) run("rollback");
    problem_.clear();
    return failed;
  }
  void hold(FileDescriptor lock) { lock_ = std::move(lock); }

 private:
  // It knows best: where a disk is full or fails, it has rolled back by itself.
  [[nodiscard]] bool is_in_transaction() const {
    return database_ != nullptr && sqlite3_get_autocommit(database_.get()) == 0;
  }
  void check(int result) {
    if (result != SQLITE_OK && result != SQLITE_DONE && problem_.empty())
      problem_ = sqlite3_errmsg(database_.get());
  }

  std::string file_;
  FileDescriptor lock_;
  std::unique_ptr<sqlite3, Closes> database_;
  std::string problem_;
};

namespace {

// The parameters of a statement, in order. Borrowed until it is stepped.
class Binder {
 public:
  explicit Binder(sqlite3_stmt* statement) : statement_(statement) {}
  Binder& number(int64_t value) {
    if (statement_ != nullptr) (void)sqlite3_bind_int64(statement_, ++at_, value);
    return *this;
  }
  Binder& text(const std::string& value) {
    if (statement_ != nullptr) {
      (void)sqlite3_bind_text(statement_, ++at_, value.data(), static_cast<int>(value.size()),
                              SQLITE_STATIC);
    }
    return *this;
  }
  Binder& bytes(std::span<const std::byte> value) {
    if (statement_ != nullptr)
      (void)sqlite3_bind_blob64(statement_, ++at_, value.data(), value.size(), SQLITE_STATIC);
    return *this;
  }
  Binder& nothing() {
    ++at_;
    return *this;
  }

 private:
  sqlite3_stmt* statement_;
  int at_ = 0;
};

std::string text_in(sqlite3_stmt* statement, int column) {
  const auto* const text = sqlite3_column_text(statement, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

Bytes bytes_in(sqlite3_stmt* statement, int column) {
  const auto* const begin = static_cast<const std::byte*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
  return begin == nullptr ? Bytes() : Bytes(begin, begin + size);
}

template <size_t kSize>
std::array<std::byte, kSize> array_in(sqlite3_stmt* statement, int column) {
  std::array<std::byte, kSize> result{};
  const Bytes bytes = bytes_in(statement, column);
  if (bytes.size() == kSize) std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

std::optional<Pane> pane_in(sqlite3_stmt* statement, int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return std::nullopt;
  return sqlite3_column_int64(statement, column);
}

// Refused: of another version, or damaged.
Expected<Control> want_in(sqlite3_stmt* statement, int column) {
  auto want = read_kept_as<Control>(bytes_in(statement, column));
  if (want) return want;
  return fail(ErrorCode::Refused, "its row in the store cannot be read: " + want.error().message);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string file_in(const std::string& directory) {
  return directory + "/clew-root.sqlite";
}

Expected<void> check_kind(int64_t id, int64_t version, const std::string& file) {
  if (id != kApplicationId)
    return fail(ErrorCode::Refused, fmt::format("{} is no store of a root", file));
  if (version == kTablesVersion) return {};
  return fail(ErrorCode::Refused,
              fmt::format("{} is a store of version {}; this version of clew reads {}: it stays as "
                          "it is, and another folder begins anew",
                          file, version, kTablesVersion));
}

// A folder that has other things in it is more likely a slip than a place for a store.
Expected<void> check_place(const std::string& directory) {
  if (directory.empty()) return fail(ErrorCode::InvalidQuery, "--store needs a folder");
  std::error_code problem;
  const std::filesystem::directory_iterator entries(directory, problem);
  if (problem || access(file_in(directory).c_str(), F_OK) == 0) return {};
  for (const auto& entry : entries) {
    if (entry.path().filename() == "lock") continue;
    return fail(
        ErrorCode::Refused,
        fmt::format("{} has no store of a root, but other files: a store begins in a folder "
                    "that is empty or new",
                    directory));
  }
  return {};
}

}  // namespace

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::~Store() = default;

Expected<std::unique_ptr<Store>> Store::open(const std::string& directory) {
  CLEW_TRY(check_place(directory));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::Io, fmt::format("cannot make {}: {}", directory, error_text(errno)));
  FileDescriptor lock(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid())
    return fail(ErrorCode::Io, fmt::format("cannot write {}: {}", directory, error_text(errno)));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::Refused, fmt::format("another root has {}", directory));
  auto database =
      std::make_unique<Database>(file_in(directory), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database->hold(std::move(lock));
  // The first one is of a new file, and stays with it.
  database->run("pragma auto_vacuum=2; pragma journal_mode=wal; pragma synchronous=full;");
  const bool is_new = database->number_of("select count(*) from sqlite_master") == 0;
  if (is_new) {
    database->run(kTables);
    database->run(fmt::format("pragma application_id={}; pragma user_version={};", kApplicationId,
                              kTablesVersion)
                      .c_str());
  }
  const int64_t id = database->number_of("pragma application_id");
  const int64_t version = database->number_of("pragma user_version");
  if (database->failed()) return database->take_problem();
  CLEW_TRY(check_kind(id, version, file_in(directory)));
  return std::make_unique<Store>(std::move(database));
}

Expected<std::unique_ptr<Store>> Store::open_to_read(const std::string& directory) {
  const std::string file = file_in(directory);
  if (access(file.c_str(), F_OK) != 0)
    return fail(ErrorCode::NotFound, fmt::format("no store of a root is in {}", directory));
  auto database = std::make_unique<Database>(file, SQLITE_OPEN_READWRITE);
  const int64_t id = database->number_of("pragma application_id");
  const int64_t version = database->number_of("pragma user_version");
  if (database->failed()) return database->take_problem();
  CLEW_TRY(check_kind(id, version, file));
  return std::make_unique<Store>(std::move(database));
}

// --- reading -------------------------------------------------------------------------------------

Expected<StoredAnswer> Store::read_recent(const std::string& name, size_t panes) {
  StoredAnswer answer = CLEW_TRY(read_head(name));
  const Statement before = database_->prepare(
      "select pane from pane where query = ? and pane <= ? order by pane desc limit 1 offset ?");
  Binder(before.get())
      .text(name)
      .number(answer.query.given.value_or(std::numeric_limits<Pane>::min()))
      .number(static_cast<int64_t>(panes));
  answer.left_out = answer.forgotten;
  if (database_->step(before.get())) answer.left_out = sqlite3_column_int64(before.get(), 0);
  if (database_->failed()) return database_->take_problem();
  const PaneRange rest{
      .first = answer.left_out ? *answer.left_out + 1 : std::numeric_limits<Pane>::min(),
      .last = std::numeric_limits<Pane>::max()};
  answer.panes = CLEW_TRY(read_panes(name, rest, std::numeric_limits<size_t>::max()));
  return answer;
}

Expected<std::vector<StoredPane>> Store::read_panes(const std::string& query,
                                                    const PaneRange& range, size_t bytes) {
  const Statement panes = database_->prepare(
      "select pane, version, cells from pane where query = ? and pane between ? and ?"
      " order by pane");
  Binder(panes.get()).text(query).number(range.first).number(range.last);
  std::vector<StoredPane> some;
  size_t taken = 0;
  while (taken < bytes && database_->step(panes.get())) {
    some.push_back({.pane = sqlite3_column_int64(panes.get(), 0),
                    .version = static_cast<uint64_t>(sqlite3_column_int64(panes.get(), 1)),
                    .table = bytes_in(panes.get(), 2)});
    taken += some.back().table.size();
  }
  if (database_->failed()) return database_->take_problem();
  return some;
}

Expected<std::optional<PaneRange>> Store::given_panes(const StoredQuery& query) {
  if (!query.given) return std::optional<PaneRange>();
  const Statement ends = database_->prepare(
      "select min(pane), max(pane) from pane where query = ?1 and pane <= ?2"
      " and pane > coalesce((select pane from forgotten where query = ?1), pane - 1)");
  Binder(ends.get()).text(query.want.query).number(*query.given);
  std::optional<PaneRange> given;
  if (database_->step(ends.get()) && sqlite3_column_type(ends.get(), 0) != SQLITE_NULL) {
    given = {.first = sqlite3_column_int64(ends.get(), 0),
             .last = sqlite3_column_int64(ends.get(), 1)};
  }
  if (database_->failed()) return database_->take_problem();
  return given;
}

Expected<std::vector<AnswerSummary>> Store::list() {
  std::vector<AnswerSummary> all;
  const Statement queries = database_->prepare(
      "select want, phase, (select count(*) from pane where query = id and pane <= given and"
      " pane > coalesce((select pane from forgotten where query = id), pane - 1)),"
      " begun, given, refused, id from query order by id");
  while (database_->step(queries.get())) {
    sqlite3_stmt* const row = queries.get();
    const auto want = want_in(row, 0);
    if (!want) {
      all.push_back(
          {.query = text_in(row, 6), .phase = Phase::Failed, .refused = want.error().message});
      continue;
    }
    const stream::Panes panes{.epoch_ns = want->epoch_ns, .width_ns = want->width_ns};
    const auto begun = pane_in(row, 3);
    const auto given = pane_in(row, 4);
    all.push_back({.query = want->query,
                   .phase = static_cast<Phase>(sqlite3_column_int(row, 1)),
                   .is_standing = want->is_standing,
                   .intervals = static_cast<uint64_t>(sqlite3_column_int64(row, 2)),
                   .begun_ns = begun ? panes.begin(*begun) : 0,
                   .given_ns = begun && given ? panes.end(*given) : 0,
                   .refused = text_in(row, 5),
                   .text = want->text});
  }
  if (database_->failed()) return database_->take_problem();
  return all;
}

Expected<StoredAnswer> Store::read_head(const std::string& name) {
  const Statement one = database_->prepare(
      "select want, phase, answered, schema, given, lost, begun, refused from query where id = ?");
  Binder(one.get()).text(name);
  const bool is_there = database_->step(one.get());
  if (database_->failed()) return database_->take_problem();
  if (!is_there) return fail(ErrorCode::NotFound, fmt::format("no query '{}'", name));
  StoredAnswer answer;
  StoredQuery& query = answer.query;
  query.want = CLEW_TRY(want_in(one.get(), 0));
  query.phase = static_cast<Phase>(sqlite3_column_int(one.get(), 1));
  query.answered = text_in(one.get(), 2);
  query.schema = array_in<std::tuple_size_v<Digest>>(one.get(), 3);
  query.given = pane_in(one.get(), 4);
  query.lost = lines_of(text_in(one.get(), 5));
  query.begun = pane_in(one.get(), 6);
  query.refused = text_in(one.get(), 7);
  const Statement total = database_->prepare("select cells from total where query = ?");
  Binder(total.get()).text(name);
  if (database_->step(total.get())) answer.total = bytes_in(total.get(), 0);
  const Statement exported = database_->prepare("select pane from exported where query = ?");
  Binder(exported.get()).text(name);
  if (database_->step(exported.get())) answer.exported = sqlite3_column_int64(exported.get(), 0);
  const Statement forgotten = database_->prepare("select pane from forgotten where query = ?");
  Binder(forgotten.get()).text(name);
  if (database_->step(forgotten.get())) answer.forgotten = sqlite3_column_int64(forgotten.get(), 0);
  const Statement nodes = database_->prepare(
      "select node, boot_id, start_ns, first, mark, bits, losses from node where query = ?");
  Binder(nodes.get()).text(name);
  while (database_->step(nodes.get())) {
    sqlite3_stmt* const row = nodes.get();
    answer.members.push_back(
        {.node = text_in(row, 0),
         .incarnation = {.boot_id = array_in<16>(row, 1),
                         .start_ns = static_cast<uint64_t>(sqlite3_column_int64(row, 2))},
         .first = sqlite3_column_int64(row, 3),
         .mark = sqlite3_column_int64(row, 4),
         .bits = static_cast<uint64_t>(sqlite3_column_int64(row, 5)),
         .losses = bytes_in(row, 6)});
  }
  const Statement dropped =
      database_->prepare("select node, first, last from dropped where query = ?");
  Binder(dropped.get()).text(name);
  while (database_->step(dropped.get())) {
    query.dropped.push_back({.node = text_in(dropped.get(), 0),
                             .panes = {.first = sqlite3_column_int64(dropped.get(), 1),
                                       .last = sqlite3_column_int64(dropped.get(), 2)}});
  }
  if (database_->failed()) return database_->take_problem();
  return answer;
}

// --- writing -------------------------------------------------------------------------------------

void Store::put(const StoredQuery& query) {
  database_->begin();
  const Bytes want = to_bytes(query.want);
  const Statement put = database_->prepare(
      "insert or replace into query(id,want,phase,answered,schema,given,lost,begun,refused) "
      "values(?,?,?,?,?,?,?,?,?)");
  Binder binder(put.get());
  binder.text(query.want.query).bytes(want);
  binder.number(static_cast<int64_t>(query.phase)).text(query.answered).bytes(query.schema);
  query.given ? binder.number(*query.given) : binder.nothing();
  const std::string lost = fmt::format("{}", fmt::join(query.lost, "\n"));
  binder.text(lost);
  query.begun ? binder.number(*query.begun) : binder.nothing();
  binder.text(query.refused);
  (void)database_->step(put.get());
  const Statement before = database_->prepare("delete from dropped where query = ?");
  Binder(before.get()).text(query.want.query);
  (void)database_->step(before.get());
  for (const NodeGap& gap : query.dropped) {
    const Statement one = database_->prepare("insert or replace into dropped values(?,?,?,?)");
    Binder(one.get())
        .text(query.want.query)
        .text(gap.node)
        .number(gap.panes.first)
        .number(gap.panes.last);
    (void)database_->step(one.get());
  }
}

void Store::put(const std::string& query, const StoredPane& pane) {
  database_->begin();
  const Statement put = database_->prepare("insert or replace into pane values(?,?,?,?)");
  Binder(put.get())
      .text(query)
      .number(pane.pane)
      .number(static_cast<int64_t>(pane.version))
      .bytes(pane.table);
  (void)database_->step(put.get());
}

void Store::put_total(const std::string& query, const Bytes& table) {
  database_->begin();
  const Statement put = database_->prepare("insert or replace into total values(?,?)");
  Binder(put.get()).text(query).bytes(table);
  (void)database_->step(put.get());
}

void Store::put(const std::string& query, const StoredMember& member) {
  database_->begin();
  const Statement put = database_->prepare("insert or replace into node values(?,?,?,?,?,?,?,?)");
  Binder(put.get())
      .text(query)
      .text(member.node)
      .bytes(member.incarnation.boot_id)
      .number(static_cast<int64_t>(member.incarnation.start_ns))
      .number(member.first)
      .number(member.mark)
      .number(static_cast<int64_t>(member.bits))
      .bytes(member.losses);
  (void)database_->step(put.get());
}

void Store::put_exported(const std::string& query, Pane pane) {
  database_->begin();
  const Statement put = database_->prepare("insert or replace into exported values(?,?)");
  Binder(put.get()).text(query).number(pane);
  (void)database_->step(put.get());
}

// --- forgetting ----------------------------------------------------------------------------------

Expected<std::vector<StoredSpan>> Store::spans() {
  std::vector<StoredSpan> all;
  const Statement queries = database_->prepare(
      "select want, phase, given, (select min(pane) from pane where query = id), id from query");
  while (database_->step(queries.get())) {
    sqlite3_stmt* const row = queries.get();
    const auto want = want_in(row, 0);
    all.push_back({.want = want.value_or(Control{.query = text_in(row, 4)}),
                   .is_readable = want.has_value(),
                   .phase = static_cast<Phase>(sqlite3_column_int(row, 1)),
                   .given = pane_in(row, 2),
                   .first = pane_in(row, 3)});
  }
  if (database_->failed()) return database_->take_problem();
  return all;
}

Expected<uint64_t> Store::bytes() {
  const int64_t pages =
      database_->number_of("pragma page_count") - database_->number_of("pragma freelist_count");
  const int64_t size = database_->number_of("pragma page_size");
  if (database_->failed()) return database_->take_problem();
  return static_cast<uint64_t>(pages * size);
}

Expected<size_t> Store::forget(const std::string& query, Pane before, size_t most) {
  database_->begin();
  const Statement last = database_->prepare(
      "select max(pane), count(*) from (select pane from pane where query = ?1 and pane < ?2"
      " and pane <= (select given from query where id = ?1) order by pane limit ?3)");
  Binder(last.get()).text(query).number(before).number(static_cast<int64_t>(most));
  const bool is_there = database_->step(last.get());
  const std::optional<Pane> up_to = is_there ? pane_in(last.get(), 0) : std::nullopt;
  const auto count = up_to ? static_cast<size_t>(sqlite3_column_int64(last.get(), 1)) : 0;
  if (up_to) {
    const Statement panes = database_->prepare("delete from pane where query = ? and pane <= ?");
    Binder(panes.get()).text(query).number(*up_to);
    (void)database_->step(panes.get());
    // One that was corrected after it had gone is older than others that have gone.
    const Statement mark = database_->prepare(
        "insert into forgotten values(?,?)"
        " on conflict(query) do update set pane = max(pane, excluded.pane)");
    Binder(mark.get()).text(query).number(*up_to);
    (void)database_->step(mark.get());
  }
  if (database_->failed()) return database_->take_problem();
  return count;
}

void Store::forget(const std::string& query, const std::string& node, const Incarnation& life) {
  database_->begin();
  const Statement one = database_->prepare(
      "delete from node where query = ? and node = ? and boot_id = ? and start_ns = ?");
  Binder(one.get())
      .text(query)
      .text(node)
      .bytes(life.boot_id)
      .number(static_cast<int64_t>(life.start_ns));
  (void)database_->step(one.get());
}

void Store::forget_query(const std::string& query) {
  database_->begin();
  for (const char* sql :
       {"delete from pane where query = ?", "delete from total where query = ?",
        "delete from node where query = ?", "delete from dropped where query = ?",
        "delete from exported where query = ?", "delete from forgotten where query = ?",
        "delete from query where id = ?"}) {
    const Statement one = database_->prepare(sql);
    Binder(one.get()).text(query);
    (void)database_->step(one.get());
  }
}

Expected<void> Store::shrink() {
  if (database_->number_of("pragma freelist_count") >= kPagesAtOnce)
    database_->run(fmt::format("pragma incremental_vacuum({})", kPagesAtOnce).c_str());
  if (database_->failed()) return database_->take_problem();
  return {};
}

Expected<void> Store::commit() {
  return database_->commit();
}

}  // namespace clew::cluster
