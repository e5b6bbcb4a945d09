// SPDX-License-Identifier: Apache-2.0
#include "output/fan_out.h"

#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "output/sinks.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::Value;

const std::vector<Column> kOneColumn = {{.name = "n"}};

// Writes down what it is told.
class Diary final : public RowSink {
 public:
  void begin(std::span<const Column>, RowMode) override { text_ += "begin "; }
  void row(std::span<const Value>) override { text_ += "row "; }
  void disarmed(const collect::DisarmedProbe&) override { text_ += "disarmed "; }
  void end_interval(const Interval&) override { text_ += "interval "; }
  void finish(const collect::Losses&) override { text_ += "finish "; }
  void flush() override { text_ += "flush "; }
  [[nodiscard]] bool ready() const override { return is_ready_; }

  void set_ready(bool is_ready) { is_ready_ = is_ready; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool is_ready_ = true;
};

void answer(RowSink& sink) {
  const std::vector<Value> row = {int64_t{7}};
  sink.begin(kOneColumn, RowMode::Table);
  sink.row(row);
  sink.disarmed({});
  sink.end_interval({.number = 1});
  sink.finish({});
  sink.flush();
}

TEST(FanOut, TellsEachSinkEverythingInOrder) {
  Diary first;
  Diary second;
  FanOut both({&first, &second});
  answer(both);
  EXPECT_EQ(first.text(), "begin row disarmed interval finish flush ");
  EXPECT_EQ(second.text(), first.text());
}

TEST(FanOut, IsReadyWhenAllAre) {
  Diary first;
  Diary second;
  const FanOut both({&first, &second});
  EXPECT_TRUE(both.ready());
  second.set_ready(false);
  EXPECT_FALSE(both.ready());
}

TEST(FanOut, OfNoSinkIsReady) {
  EXPECT_TRUE(FanOut({}).ready());
}

TEST(FanOut, AFileThatCannotBeWrittenTakesNothingFromTheOthers) {
  const FileDescriptor read_only(open("/dev/null", O_RDONLY | O_CLOEXEC));
  FileSink broken(read_only.get());
  StringSink whole;
  const auto first = make_sink({.format = Format::Csv}, broken, broken);
  const auto second = make_sink({.format = Format::Csv}, whole, whole);
  FanOut both({first.get(), second.get()});
  answer(both);
  EXPECT_EQ(broken.error(), EBADF);
  EXPECT_TRUE(both.ready()) << "what failed keeps nobody waiting";
  EXPECT_EQ(whole.text(), "interval,n\r\n1,7\r\n");
}

}  // namespace
}  // namespace clew::output
