// SPDX-License-Identifier: Apache-2.0
// With the cpp and the headers of the compiler that builds Clew.
#include "query/d/preprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/d/parse_testing.h"

namespace clew::query::d {
namespace {

using testing::HasSubstr;

TEST(Preprocess, ProgramsAreExpandedAndKeepTheirLines) {
  const Expected<Preprocessed> result =
      preprocess("#!/usr/bin/dtrace -s\n#ifdef __SUNW_D\nBEGIN { x = N; }\n#endif\nEND { ) }\n",
                 {.arguments = {"-DN=5"}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->text, HasSubstr("BEGIN { x = 5; }"));
  EXPECT_EQ(printed(result->text), "[D_SYNTAX] line 5: extra ) in input stream");
}

TEST(Preprocess, HeadersOfTheSystemCanBeIncluded) {
  const Expected<Preprocessed> result = preprocess(
      "#include <sys/types.h>\n#include <stdlib.h>\n#include <netinet/in.h>\n"
      "BEGIN { x = AF_INET + sizeof (struct sockaddr_in); }\n",
      {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(printed(result->text), ":::BEGIN { (x = (2 + sizeof(struct sockaddr_in))); }\n");
}

TEST(Preprocess, ErrorsOfThePreprocessorArePassedOn) {
  const Expected<Preprocessed> wrong = preprocess("#include \"/nowhere.h\"\n", {});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("Preprocessor failed to process input program"));
  EXPECT_THAT(wrong.error().message, HasSubstr("/nowhere.h"));
  const Expected<Preprocessed> absent = preprocess("x", {.path = "/nowhere/cpp", .arguments = {}});
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("failed to invoke C preprocessor"));
}

}  // namespace
}  // namespace clew::query::d
