// SPDX-License-Identifier: Apache-2.0
// Tokens as programs make and read them: no two are the same, and nothing else is read.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clew/cause.h"
#include "said.h"

namespace {

using Token = std::array<uint64_t, 2>;

Token make() {
  Token token{};
  clew_cause_make_token(token.data());
  return token;
}

// Independent of how the header writes them.
std::string text_of(const Token& token) {
  std::array<char, 64> text{};
  snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(token[0]),
           static_cast<unsigned long long>(token[1]));
  return text.data();
}

// Tokens of processes that have this memory in common.
class Shared {
 public:
  explicit Shared(size_t count) : count_(count) {
    void* const made = mmap(nullptr, count * sizeof(Token), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tokens_ = static_cast<Token*>(made);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(tokens_, count_ * sizeof(Token)); }
  Token& at(size_t i) { return tokens_[i]; }
  [[nodiscard]] std::set<Token> all() const { return {tokens_, tokens_ + count_}; }

 private:
  size_t count_;
  Token* tokens_;
};

void expect_end(pid_t child, int wanted = 0) {
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), wanted);
}

TEST(CauseTokens, OfThreadsAreAllDifferent) {
  constexpr size_t kThreads = 8;
  constexpr size_t kEach = 25'000;
  std::vector<std::vector<Token>> made(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Token>& own : made) {
    threads.emplace_back([&own] {
      for (size_t i = 0; i < kEach; ++i)
        own.push_back(make());
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::set<Token> all;
  for (const std::vector<Token>& own : made)
    all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), kThreads * kEach);
  EXPECT_FALSE(all.contains(Token{}));
}

// Children of one moment, and theirs, beside what their parent makes meanwhile.
TEST(CauseTokens, OfForkedChildrenAreAllDifferent) {
  constexpr size_t kChildren = 16;
  constexpr size_t kEach = 500;
  Shared tokens((2 * kChildren + 1) * kEach);
  const auto fill = [&tokens](size_t part) {
    for (size_t i = 0; i < kEach; ++i)
      tokens.at(part * kEach + i) = make();
  };
  (void)make();
  std::vector<pid_t> children;
  for (size_t i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const pid_t grandchild = i % 2 == 0 ? fork() : -1;  // Before it has a key, or behind.
      fill(2 * i);
      if (grandchild == 0) _exit(0);
      const pid_t last = fork();
      fill(2 * i + 1);
      if (last == 0) _exit(0);
      if (grandchild > 0) waitpid(grandchild, nullptr, 0);
      waitpid(last, nullptr, 0);
      _exit(0);
    }
    children.push_back(child);
  }
  fill(2 * kChildren);
  for (const pid_t child : children)
    expect_end(child);
  const std::set<Token> all = tokens.all();
  EXPECT_EQ(all.size(), (2 * kChildren + 1) * kEach);
  EXPECT_FALSE(all.contains(Token{}));
}

TEST(CauseTokens, OfCAndOfCxxAreOfOneProcess) {
  std::set<std::string> all;
  for (int i = 0; i < 1000; ++i) {
    std::array<char, CLEW_CAUSE_TEXT> text{};
    make_token_in_c(text.data());
    all.insert(text.data());
    clew_cause_send_text(text.data());
    all.insert(text.data());
  }
  EXPECT_EQ(all.size(), 2000U);
}

// The key 00 01 … 0f and the bytes 00 01 … 07, as OpenSSL's SIPHASH says (size 16).
TEST(CauseTokens, AreSipHash) {
  const Token key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  Token token{};
  clew_cause_hash(key.data(), 0x0706050403020100, token.data());
  EXPECT_EQ(token, (Token{0x61f55862baa9623b, 0xb49714f364e2830f}));
}

TEST(CauseTokens, LeaveErrnoAlone) {
  const pid_t child = fork();  // Draws its own key.
  if (child == 0) {
    errno = EXDEV;
    clew_cause_maker_here = nullptr;
    const Token token = make();
    _exit(errno == EXDEV && token != Token{} ? 0 : 1);
  }
  expect_end(child);
}

// Each token is asked of the kernel then.
TEST(CauseTokens, AreMadeWithoutMemory) {
  const pid_t child = fork();
  if (child == 0) {
    clew_cause_maker_here = nullptr;
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
    const Token one = make();
    const Token other = make();
    const bool has_page = clew_cause_maker_here != nullptr;
    _exit(!has_page && one != Token{} && other != Token{} && one != other ? 0 : 1);
  }
  expect_end(child);
}

// Without random numbers there is none, and nothing that could be taken for one.
TEST(CauseTokens, AreNoneWhereTheKernelHasNoRandomNumbers) {
  const pid_t child = fork();
  if (child == 0) {
    std::array<sock_filter, 4> refuse = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program = {refuse.size(), refuse.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(2);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(3);
    std::array<char, CLEW_CAUSE_TEXT> text{};
    clew_cause_send_text(text.data());
    if (std::string(text.data()) != std::string(32, '0')) _exit(4);
    _exit(clew_cause_receive_string(text.data()) == 0 ? 0 : 1);
  }
  expect_end(child);
}

// --- texts ---------------------------------------------------------------------------------------

TEST(CauseTokens, AreWrittenAndReadAsHexadecimalDigits) {
  for (int i = 0; i < 10'000; ++i) {
    std::array<char, CLEW_CAUSE_TEXT> text{};
    clew_cause_send_text(text.data());
    const Token sent = {said.sent[0], said.sent[1]};
    ASSERT_EQ(text_of(sent), text.data());
    ASSERT_EQ(receive_in_c(text.data(), 32), 1);
    ASSERT_EQ((Token{said.received[0], said.received[1]}), sent);
  }
}

TEST(CauseTokens, HaveNoOtherDigits) {
  const std::string good = "0123456789abcdef0123456789abcdef";
  for (size_t at = 0; at < good.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string text = good;
      text[at] = static_cast<char>(c);
      const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      const int before = said.receives;
      ASSERT_EQ(clew_cause_receive_text(text.data(), text.size()), is_digit ? 1 : 0) << text;
      ASSERT_EQ(said.receives, before + 1);
      const Token received = {said.received[0], said.received[1]};
      ASSERT_EQ(text_of(received), is_digit ? text : std::string(32, '0'));
    }
  }
}

TEST(CauseTokens, ThatAreNotThereEndWhatTheThreadWorksFor) {
  const Said before = said;
  EXPECT_EQ(clew_cause_receive_text(nullptr, 7), 0);
  EXPECT_EQ(clew_cause_receive_text("", 0), 0);
  EXPECT_EQ(clew_cause_receive_string(nullptr), 0);
  EXPECT_EQ(clew_cause_receive_string(""), 0);
  EXPECT_EQ(clew_cause_receive_baggage("a=b", 3), 0);
  EXPECT_EQ(clew_cause_receive_baggage(nullptr, 3), 0);
  EXPECT_EQ(said.ends, before.ends + 6);
  EXPECT_EQ(said.receives, before.receives);
}

// --- the header of HTTP --------------------------------------------------------------------------

// With the new token as TOKEN.
std::string with_token(std::string baggage, size_t room = 200) {
  const size_t length = baggage.size();
  baggage.resize(length + room, '#');
  const size_t now = clew_cause_send_baggage(baggage.data(), length, baggage.size());
  EXPECT_TRUE(now == length || baggage.at(now) == '\0');
  baggage.resize(now);
  const size_t at = baggage.find(text_of({said.sent[0], said.sent[1]}));
  if (at != std::string::npos) baggage.replace(at, 32, "TOKEN");
  return baggage;
}

TEST(CauseBaggage, KeepsOtherMembers) {
  EXPECT_EQ(with_token(""), "clew=TOKEN");
  EXPECT_EQ(with_token("a=1"), "a=1,clew=TOKEN");
  EXPECT_EQ(with_token("a=1;p=\"x\" , b = 2"), "a=1;p=\"x\" , b = 2,clew=TOKEN");
  EXPECT_EQ(with_token("clewx=1,xclew=2,clew"), "clewx=1,xclew=2,clew,clew=TOKEN");
}

TEST(CauseBaggage, HasOneTokenOfOurs) {
  EXPECT_EQ(with_token("clew=old"), "clew=TOKEN");
  EXPECT_EQ(with_token("clew=old, a=1"), " a=1,clew=TOKEN");
  EXPECT_EQ(with_token("a=1, clew = old;p ,b=2,clew="), "a=1,b=2,clew=TOKEN");
}

TEST(CauseBaggage, IsLeftAloneWithoutRoom) {
  const int before = said.sends;
  EXPECT_EQ(with_token("a=1,clew=old", CLEW_CAUSE_MEMBER), "a=1,clew=old");
  EXPECT_EQ(with_token(std::string(8190, 'a')), std::string(8190, 'a'));
  EXPECT_EQ(said.sends, before);
  EXPECT_EQ(with_token("a=1", CLEW_CAUSE_MEMBER + 1), "a=1,clew=TOKEN");
  EXPECT_EQ(said.sends, before + 1);
}

TEST(CauseBaggage, IsReadWhereItsTokenIsOneAndAlone) {
  const std::string token = "00112233445566778899aabbccddeeff";
  const auto reads = [](const std::string& baggage) {
    const int before = said.receives;
    const int result = clew_cause_receive_baggage(baggage.data(), baggage.size());
    EXPECT_EQ(said.receives, before + 1) << baggage;
    EXPECT_EQ(said.received[0], result == 1 ? 0x0011223344556677 : 0) << baggage;
    return result == 1;
  };
  EXPECT_TRUE(reads("clew=" + token));
  EXPECT_TRUE(reads("a=1, \t clew \t= " + token + " ;p=1;q , b=2"));
  EXPECT_TRUE(reads(",,clew=" + token + ","));
  EXPECT_FALSE(reads("clew=" + token + ",clew=" + token));
  EXPECT_FALSE(reads("clew=" + token + " 1"));
  EXPECT_FALSE(reads("clew=" + token.substr(1)));
  EXPECT_FALSE(reads("clew="));
  EXPECT_FALSE(reads("clew=" + token + "," + std::string(1 << 20, 'a')));
}

}  // namespace
