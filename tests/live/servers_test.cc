// SPDX-License-Identifier: Apache-2.0
// Unmodified programs of Debian under load with all functions of their binary traced: their own
// results are what they are untraced. They talk over sockets in temporary folders, nowhere else.
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// Every entry, and every entry and return, of one module.
std::string all_entries(const std::string& module) {
  return "from e in entry(\"" + module + "!*\") select new { calls = count() }";
}
std::string all_entries_and_returns(const std::string& module) {
  return "from e in entry(\"" + module + "!*\"), return(\"" + module +
         "!*\") select new { calls = count() }";
}

// Traces `pid` with `query` while `work` runs; `work` returns the program's own result.
template <typename Work>
std::string traced(pid_t pid, const std::string& query, const Work& work) {
  const ProcessState before = ProcessState::of(pid);
  Tracer tracer = Tracer::attach(pid, query, {"--yes"});
  std::string result = work();
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size(), 1U) << report.error;
  for (const nlohmann::json& row : report.rows)
    EXPECT_GT(row.at("calls").get<uint64_t>(), 1000U);
  expect_text_equals_file(pid);
  expect_no_strange_residue(before, pid);
  return result;
}

// --- redis ---------------------------------------------------------------------------------------

TEST(Servers, RedisAnswersTheSameWithAllFunctionsTraced) {
  ASSERT_TRUE(present("/usr/bin/redis-server"));
  const Redis redis;
  const std::string expected = redis.work();
  EXPECT_NE(expected.find("20001"), std::string::npos) << expected;
  const auto work = [&] { return redis.work(); };
  EXPECT_EQ(traced(redis.pid(), all_entries("redis-server"), work), expected);
  EXPECT_EQ(traced(redis.pid(), all_entries_and_returns("redis-server"), work), expected);
  EXPECT_EQ(redis.work(), expected);
}

TEST(Servers, RedisUnderLoadIsAttachedToAgainAndAgain) {
  ASSERT_TRUE(present("/usr/bin/redis-server"));
  const Redis redis;
  const std::string expected = redis.work();
  Child load = redis.endless_load("set,get");
  for (int i = 0; i < 10; ++i) {
    const Report report =
        Tracer::attach(redis.pid(), all_entries_and_returns("redis-server"), {"--yes"}).finish();
    EXPECT_EQ(report.status, 0) << report.error;
  }
  load.signal(SIGKILL);
  load.wait_for_end();
  expect_text_equals_file(redis.pid());
  EXPECT_EQ(redis.work(), expected);
}

// --- nginx ---------------------------------------------------------------------------------------

class Nginx {
 public:
  Nginx() : server_(options()) { wait_for_socket(server_, socket()); }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  // The master takes its worker along only when it may end by itself.
  ~Nginx() {
    server_.signal(SIGTERM);
    server_.wait_for_end();
  }

  [[nodiscard]] std::string socket() const { return folder_.file("nginx.sock"); }
  // The one worker: the master's only child.
  [[nodiscard]] pid_t worker() const {
    const std::string master = std::to_string(server_.pid());
    std::ifstream file("/proc/" + master + "/task/" + master + "/children");
    pid_t pid = 0;
    file >> pid;
    return pid;
  }
  // A thousand requests over one connection: all that came back.
  [[nodiscard]] std::string work() const {
    const FileDescriptor connection = connect_to(socket());
    std::string all;
    for (int i = 0; i < 1000; ++i) {
      const std::string path = i % 10 == 9 ? "/missing" : "/page" + std::to_string(i % 10);
      all += fetch(connection, path);
    }
    return all;
  }

 private:
  ChildOptions options() {
    for (int i = 0; i < 9; ++i) {
      std::ofstream page(folder_.file("page" + std::to_string(i)));
      for (int line = 0; line < 100 * (i + 1); ++line)
        page << "line " << line * i << "\n";
    }
    std::ofstream(folder_.file("nginx.conf"))
        << (getuid() == 0 ? "user root;\n" : "") << "daemon off;\nworker_processes 1;\npid "
        << folder_.file("pid") << ";\nerror_log stderr crit;\n"
        << "events { worker_connections 64; }\nhttp { access_log off; gzip off; etag off;\n"
        << "client_body_temp_path " << folder_.file("b") << "; proxy_temp_path "
        << folder_.file("p") << "; fastcgi_temp_path " << folder_.file("f") << "; uwsgi_temp_path "
        << folder_.file("u") << "; scgi_temp_path " << folder_.file("s")
        << ";\nkeepalive_requests 100000;\n"
        << "server { listen unix:" << socket() << "; root " << folder_.path() << "; } }\n";
    return {
        .arguments = {"/usr/sbin/nginx", "-c", folder_.file("nginx.conf"), "-p", folder_.path()}};
  }

  static std::string fetch(const FileDescriptor& connection, const std::string& path) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
    EXPECT_EQ(write(connection.get(), request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    std::string response;
    std::array<char, 65536> buffer{};
    size_t expected = std::string::npos;
    while (response.size() < expected) {
      const ssize_t got = read(connection.get(), buffer.data(), buffer.size());
      if (got <= 0) return response + "(closed)";
      response.append(buffer.data(), static_cast<size_t>(got));
      expected = expected_size(response);
    }
    return without_date(response);
  }

  static size_t expected_size(const std::string& response) {
    const size_t head = response.find("\r\n\r\n");
    const size_t length = response.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos) return std::string::npos;
    return head + 4 + std::stoul(response.substr(length + 16));
  }

  static std::string without_date(std::string response) {
    const size_t date = response.find("Date: ");
    return date == std::string::npos ? response : response.erase(date, 37);
  }

  TemporaryFolder folder_;
  Child server_;
};

TEST(Servers, NginxServesTheSameWithAllFunctionsTraced) {
  ASSERT_TRUE(present("/usr/sbin/nginx"));
  const Nginx nginx;
  const std::string expected = nginx.work();
  EXPECT_NE(expected.find("404 Not Found"), std::string::npos);
  const auto work = [&] { return nginx.work(); };
  EXPECT_EQ(traced(nginx.worker(), all_entries("nginx"), work), expected);
  EXPECT_EQ(traced(nginx.worker(), all_entries_and_returns("nginx"), work), expected);
  EXPECT_EQ(nginx.work(), expected);
}

// What lies behind a request's line, which is whatever was there, makes no groups.
TEST(Servers, NginxRequestsAreCountedByTheirLines) {
  ASSERT_TRUE(present("/usr/sbin/nginx"));
  const Nginx nginx;
  const std::string untraced = nginx.work();
  Tracer tracer = Tracer::attach(nginx.worker(),
                                 "from r in nginx.request_line groupby before(r.line, \" HTTP/\") "
                                 "select before(r.line, \" HTTP/\") as name, calls = count()");
  EXPECT_EQ(nginx.work(), untraced);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0) << report.summary;
  Numbers expected = {{"GET /missing", 100}};
  for (int i = 0; i < 9; ++i)
    expected["GET /page" + std::to_string(i)] = 100;
  EXPECT_EQ(report.calls(), expected) << report.summary;
}

// --- programs that read statements from their standard input
// ---------------------------------------

// A program that answers each batch of statements up to a line that the batch itself ends with.
class Interpreter {
 public:
  Interpreter(const ChildOptions& options, std::string last_line)
      : child_(options), last_line_(std::move(last_line)) {}
  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  std::string ask(const std::string& statements) {
    child_.write_line(statements);
    std::string all;
    for (auto line = child_.read_line(); line && *line != last_line_; line = child_.read_line()) {
      all += *line + "\n";
    }
    return all;
  }

 private:
  Child child_;
  std::string last_line_;
};

TEST(Servers, SqliteComputesTheSameWithAllFunctionsTraced) {
  ASSERT_TRUE(present("/usr/bin/sqlite3"));
  Interpreter sqlite({.arguments = {"sqlite3", "-batch", ":memory:"}}, "done");
  const std::string work =
      "drop table if exists t; create table t(a integer, b text);\n"
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)\n"
      "insert into t select i * 7919 % 10007, hex(i) from n;\n"
      "create index x on t(a);\n"
      "select sum(a), count(distinct b), max(b), group_concat(a % 10, '') from t where a < 500;\n"
      "select a, count(*), min(b) from t group by a order by 2 desc, 1 limit 20;\n"
      "delete from t where a % 3 = 0; select count(*), sum(length(b)) from t;\n.print done";
  const std::string expected = sqlite.ask(work);
  EXPECT_FALSE(expected.empty());
  const auto again = [&] { return sqlite.ask(work); };
  EXPECT_EQ(traced(sqlite.pid(), all_entries("libsqlite3.so.0"), again), expected);
  EXPECT_EQ(traced(sqlite.pid(), all_entries_and_returns("libsqlite3.so.0"), again), expected);
  EXPECT_EQ(sqlite.ask(work), expected);
}

TEST(Servers, PythonComputesTheSameWithAllFunctionsTraced) {
  ASSERT_TRUE(present("/usr/bin/python3"));
  const std::string program =
      "import sys, json, hashlib, re, random\n"
      "def work():\n"
      "    random.seed(7); h = hashlib.sha256()\n"
      "    for i in range(300):\n"
      "        d = {str(j): [random.random(), j ** 20, 'x' * j] for j in range(20)}\n"
      "        try:\n"
      "            h.update(json.dumps(d, sort_keys=True).encode()); d['none']\n"
      "        except KeyError as e: h.update(str(e).encode())\n"
      "        h.update(''.join(re.findall(r'[0-9]+', str(sorted(d.items())))).encode())\n"
      "    return h.hexdigest()\n"
      "for line in sys.stdin: print(work()); print('done', flush=True)\n";
  Interpreter python({.arguments = {"/usr/bin/python3", "-c", program}}, "done");
  const std::string expected = python.ask("go");
  EXPECT_EQ(expected.size(), 65U);
  const auto again = [&] { return python.ask("go"); };
  const std::string module = fs::canonical("/usr/bin/python3").filename().string();
  EXPECT_EQ(traced(python.pid(), all_entries(module), again), expected);
  EXPECT_EQ(traced(python.pid(), all_entries_and_returns(module), again), expected);
  EXPECT_EQ(python.ask("go"), expected);
}

// --- PostgreSQL
// ------------------------------------------------------------------------------------

std::string postgres_program(const std::string& name) {
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const std::string path = (version.path() / "bin" / name).string();
    if (present(path)) return path;
  }
  return "";
}

class Postgres {
 public:
  Postgres() : server_(options()) { wait_for_socket(server_, folder_.file(".s.PGSQL.5432")); }
  ~Postgres() {
    server_.signal(SIGINT);  // Fast shutdown: it ends its children.
    server_.wait_for_end();
  }
  Postgres(const Postgres&) = delete;
  Postgres& operator=(const Postgres&) = delete;

  // One backend, spoken to through psql.
  [[nodiscard]] Interpreter connect() const {
    return Interpreter(
        {.arguments = {"psql", "-h", folder_.path(), "-U", "tester", "-d", "postgres", "-qAtX"}},
        "done");
  }

 private:
  ChildOptions options() {
    const std::string data = folder_.file("data");
    output_of({.arguments = {postgres_program("initdb"), "-D", data, "-U", "tester", "-A", "trust",
                             "--no-sync", "--locale=C", "-E", "UTF8"},
               .folder = folder_.path(),
               .as_nobody = true});
    return {.arguments = {postgres_program("postgres"), "-D", data, "-k", folder_.path(), "-c",
                          "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"},
            .folder = folder_.path(),
            .as_nobody = true};
  }

  TemporaryFolder folder_;
  Child server_;
};

TEST(Servers, PostgresComputesTheSameWithAllFunctionsTraced) {
  ASSERT_NE(postgres_program("initdb"), "");
  const Postgres server;
  Interpreter session = server.connect();
  const pid_t backend = std::stoi(session.ask("select pg_backend_pid();\n\\echo done"));
  const std::string work =
      "drop table if exists t; create table t as select i, md5(i::text) as m, i % 97 as g"
      " from generate_series(1, 20000) i;\n"
      "create index on t(g); analyze t;\n"
      "select g, count(*), min(m), avg(i)::numeric(12,3) from t group by g order by g;\n"
      "select count(*) from t a join t b on a.g = b.g where a.i < 300;\n"
      "do $$ begin for n in 1..200 loop begin perform 1 / (n % 2); exception when division_by_zero"
      " then null; end; end loop; end $$;\n"
      "select jsonb_agg(m order by i) from t where g = 5 and i < 2000;\n\\echo done";
  const std::string expected = session.ask(work);
  EXPECT_FALSE(expected.empty());
  const auto again = [&] { return session.ask(work); };
  EXPECT_EQ(traced(backend, all_entries("postgres"), again), expected);
  EXPECT_EQ(traced(backend, all_entries_and_returns("postgres"), again), expected);
  EXPECT_EQ(session.ask(work), expected);
}

// Rows by the statement that inserts them, of two backends at once.
TEST(Servers, PostgresInsertsAreJoinedWithTheirStatements) {
  const Postgres server;
  Interpreter first = server.connect();
  Interpreter second = server.connect();
  const std::string who = "select pg_backend_pid();\n\\echo done";
  const pid_t first_pid = std::stoi(first.ask(who));
  const pid_t second_pid = std::stoi(second.ask(who));
  first.ask("create table a (i int); create table b (i int);\n\\echo done");
  const std::string query =
      "from h in entry(\"postgres!heap_insert\") join s in MostRecent(postgresql.statement) on s "
      "-> "
      "h select new { name = s.query, calls = count() }";
  Tracer tracer = Tracer::attach(first_pid, query, {"-p", std::to_string(second_pid)});
  Numbers expected;
  for (int i = 1; i <= 20; ++i) {
    Interpreter& session = i % 2 == 0 ? first : second;
    const std::string text = "insert into " + std::string(i % 3 == 0 ? "a" : "b") +
                             " select generate_series(1, " + std::to_string(i) + ");";
    session.ask(text + "\n\\echo done");
    expected[text] = static_cast<uint64_t>(i);
  }
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), expected) << report.summary;
  EXPECT_EQ(report.lost(), 0) << report.summary;
  // One begins with psql's message, and one with the statement, as that one came from nobody.
  EXPECT_EQ(report.summary.at("by_cause").at("requests"), 40);
}

}  // namespace
}  // namespace clew::live
