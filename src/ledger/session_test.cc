// SPDX-License-Identifier: Apache-2.0
#include "ledger/session.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/read.h"

namespace clew::ledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Ledgers : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/ledger.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  [[nodiscard]] std::string folder() const { return top_ + "/clew"; }
  Wish wish(const std::string& text) {
    return {.text = text,
            .text_name = "query",
            .warn = [this](std::string_view warning) { warnings_.emplace_back(warning); },
            .places = {.folder = folder(), .journal = journal_, .syslog = syslog_}};
  }
  Session open(const std::string& text) {
    auto session = Session::open(wish(text));
    EXPECT_TRUE(session);
    return std::move(*session);
  }
  Told read() {
    auto told = read_sessions(folder());
    EXPECT_TRUE(told) << told.error().message;
    return std::move(*told);
  }
  // A log that can be read: its socket.
  static FileDescriptor listen(const std::string& path) {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  static std::string heard(const FileDescriptor& socket) {
    std::string text(1 << 18, '\0');
    const ssize_t count = recv(socket.get(), text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

  std::string top_;
  std::string journal_;
  std::string syslog_;
  std::vector<std::string> warnings_;
};

TEST_F(Ledgers, ASessionHasItsBeginningAndItsEnd) {
  Session session = open("entry(\"f\") select count()");
  ASSERT_TRUE(session.begin({.processes = {getpid()}, .is_kernel = true}));
  Told told = read();
  ASSERT_THAT(told.sessions, SizeIs(1));
  EXPECT_FALSE(told.sessions[0].ending);
  session.count({.is_stopped = true, .rows = 7, .missed = 1, .dropped = 2});
  session.end(nullptr);
  told = read();
  ASSERT_THAT(told.sessions, SizeIs(1));
  const Beginning& beginning = told.sessions[0].beginning;
  EXPECT_EQ(beginning.text, "entry(\"f\") select count()");
  EXPECT_EQ(beginning.who.uid, getuid());
  EXPECT_EQ(beginning.clew_pid, getpid());
  EXPECT_TRUE(beginning.is_kernel);
  ASSERT_THAT(beginning.processes, SizeIs(1));
  EXPECT_EQ(beginning.processes[0].pid, getpid());
  EXPECT_EQ(beginning.processes[0].name, "ledger_test");
  EXPECT_GT(beginning.processes[0].started_ns, 0);
  EXPECT_LE(beginning.processes[0].started_ns, beginning.time_ns + 20'000'000);
  ASSERT_TRUE(told.sessions[0].ending);
  const Ending& ending = *told.sessions[0].ending;
  EXPECT_EQ(ending.status, Status::Stopped);
  EXPECT_EQ(ending.rows, 7U);
  EXPECT_EQ(ending.missed, 1U);
  EXPECT_EQ(ending.dropped, 2U);
  // Times have microseconds.
  EXPECT_NEAR(static_cast<double>(ending.lasted_ns.value_or(0)),
              static_cast<double>(ending.time_ns - beginning.time_ns), 1000);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Ledgers, WhatDidNotBeginIsRefusedOrNothing) {
  const Error no{ErrorCode::Refused, "process 1 is not yours"};
  open("refused").end(&no);
  open("compiled alone").end(nullptr);
  Session late = open("refused late");
  ASSERT_TRUE(late.begin({}));
  late.end(&no);
  const Told told = read();
  ASSERT_THAT(told.sessions, SizeIs(2));
  EXPECT_EQ(told.sessions[1].ending.value_or(Ending{}).status, Status::Refused);
  EXPECT_EQ(told.sessions[0].beginning.text, "refused");
  ASSERT_TRUE(told.sessions[0].ending);
  EXPECT_EQ(told.sessions[0].ending->status, Status::Refused);
  EXPECT_EQ(told.sessions[0].ending->reason, "process 1 is not yours");
}

TEST_F(Ledgers, ASessionThatIsForgottenHasFailed) {
  {
    Session session = open("q");
    ASSERT_TRUE(session.begin({}));
    const Session moved = std::move(session);
  }
  const Told told = read();
  ASSERT_THAT(told.sessions, SizeIs(1));
  ASSERT_TRUE(told.sessions[0].ending);
  EXPECT_EQ(told.sessions[0].ending->status, Status::Failed);
}

TEST_F(Ledgers, TheNextSessionNotesThatOneWasKilled) {
  journal_ = top_ + "/journal";
  const FileDescriptor journal = listen(journal_);
  const pid_t child = fork();
  if (child == 0) {
    Session session = open("killed");
    (void)session.begin({.processes = {getppid()}});
    (void)kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Told told = read();
  ASSERT_THAT(told.sessions, SizeIs(1));
  EXPECT_EQ(told.sessions[0].state, State::Gone);
  EXPECT_THAT(heard(journal), HasSubstr("begins: killed"));

  Session next = open("next");
  ASSERT_TRUE(next.begin({}));
  next.end(nullptr);
  told = read();
  ASSERT_THAT(told.sessions, SizeIs(2));
  ASSERT_TRUE(told.sessions[0].ending);
  EXPECT_EQ(told.sessions[0].ending->status, Status::Killed);
  EXPECT_EQ(told.sessions[0].beginning.clew_pid, child);
  EXPECT_EQ(told.sessions[1].ending->status, Status::Ended);
  EXPECT_THAT(heard(journal), HasSubstr("begins: next"));
  EXPECT_THAT(heard(journal), HasSubstr("killed: process"));
}

TEST_F(Ledgers, ARunningOneOfAnotherProcessIsRunning) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Session session = open("runs");
    (void)session.begin({});
    (void)!write(ready[1], "y", 1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  Session other = open("other");
  ASSERT_TRUE(other.begin({}));
  const Told told = read();
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_THAT(told.sessions, SizeIs(2));
  EXPECT_EQ(told.sessions[0].state, State::Running);
  (void)close(ready[0]);
  (void)close(ready[1]);
}

TEST_F(Ledgers, SyslogIsToldWhereThereIsNoJournal) {
  syslog_ = top_ + "/log";
  const FileDescriptor log = listen(syslog_);
  Session session = open("a query");
  ASSERT_TRUE(session.begin({}));
  session.end(nullptr);
  EXPECT_THAT(heard(log), HasSubstr("begins: a query"));
  EXPECT_THAT(heard(log), HasSubstr(" ended after "));
}

TEST_F(Ledgers, AJournalThatDoesNotListenKeepsNobodyWaiting) {
  journal_ = top_ + "/journal";
  const FileDescriptor journal = listen(journal_);
  for (int i = 0; i < 300; ++i) {  // More than a socket's queue takes (unix(7), max_dgram_qlen).
    Session session = open("q");
    ASSERT_TRUE(session.begin({}));
    session.end(nullptr);
  }
  EXPECT_THAT(read().sessions, SizeIs(300));
}

TEST_F(Ledgers, ALogThatCannotBeWrittenIsToldOnce) {
  std::ofstream(folder()) << "no folder";
  Session session = open("q");
  EXPECT_TRUE(session.begin({}));
  session.end(nullptr);
  EXPECT_THAT(warnings_,
              ElementsAre("the log of sessions lacks this one: " + folder() + ": Not a directory"));
}

TEST_F(Ledgers, DamagedLinesAreCountedAndHideNoOthers) {
  open("warm").end(nullptr);
  Session session = open("q");
  ASSERT_TRUE(session.begin({}));
  session.end(nullptr);
  std::ofstream(folder() + "/" + kSessionsFile, std::ios::app) << "{\"half\":\n\n\xff\n";
  open("r").end(std::make_unique<Error>(Error{ErrorCode::Refused, "no"}).get());
  const Told told = read();
  EXPECT_THAT(told.sessions, SizeIs(2));
  EXPECT_EQ(told.damaged_lines, 2U);
}

// Between its last line and the removal of its mark a session can be killed, too.
TEST_F(Ledgers, AnEndThatWasToldStands) {
  Session session = open("q");
  ASSERT_TRUE(session.begin({}));
  session.end(nullptr);
  const Ending killed{.session = read().sessions.at(0).beginning.session, .status = Status::Killed};
  std::ofstream(folder() + "/" + kSessionsFile, std::ios::app) << line_of(killed);
  EXPECT_EQ(read().sessions.at(0).ending->status, Status::Ended);
}

TEST_F(Ledgers, AFolderThatIsNotThereHasNoSessions) {
  EXPECT_THAT(read().sessions, IsEmpty());
}

}  // namespace
}  // namespace clew::ledger
