// SPDX-License-Identifier: Apache-2.0
#include "cmd/verb_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::cmd {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// A folder of verbs, gone at the end.
class VerbFolder {
 public:
  explicit VerbFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("clew-verbs-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  VerbFolder(const VerbFolder&) = delete;
  VerbFolder& operator=(const VerbFolder&) = delete;
  ~VerbFolder() { std::filesystem::remove_all(path_); }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::vector<NamedVerb> verbs_in(const std::vector<std::string>& folders) {
  Verbs found = read_verbs(folders);
  EXPECT_TRUE(found.problems.empty());
  return std::move(found.verbs);
}

constexpr const char* kQuery =
    "// help: what is read\n"
    "// needs: root, process\n"
    "// every: 2s\n"
    "// parameter: least number 4096 only reads of so many bytes\n"
    "// parameter: name text - of programs like this\n"
    "//\n"
    "// How many bytes: see below.\n"
    "from r in syscall_return(\"read\") where r.retval >= ${least} and r.comm like \"${name}\"\n";

TEST(VerbFile, AHeaderSaysWhatAVerbIs) {
  const VerbFolder folder("header");
  folder.put("reads.clew", kQuery);
  folder.put("notes.txt", "no verb");
  folder.put("Loud-Name.clew", "no name of a verb");
  const auto verbs = verbs_in({folder.path()});
  ASSERT_EQ(verbs.size(), 1U);
  const NamedVerb& verb = verbs.front();
  EXPECT_EQ(verb.name, "reads");
  EXPECT_EQ(verb.help, "what is read");
  EXPECT_EQ(verb.every, "2s");
  EXPECT_TRUE(verb.needs_root && verb.needs_process);
  EXPECT_EQ(verb.texts[0].needs_root, true);
  ASSERT_EQ(verb.parameters.size(), 2U);
  EXPECT_EQ(verb.parameters[0].value, "4096");
  EXPECT_EQ(verb.parameters[0].words, "only reads of so many bytes");
  EXPECT_EQ(verb.parameters[1].value, "");
}

TEST(VerbFile, VariantsGoBeforeTheVerbAndATextBehindItsScript) {
  const VerbFolder folder("variants");
  folder.put("waits.d", "/*\n * help: waits\n */\nBEGIN { exit(0); }\n");
  folder.put("waits.text.d", "END { printf(\"all\"); }\n");
  folder.put("waits.redis.clew", "// when: program redis-*\nfrom r in redis.call\n");
  folder.put("waits.stacks.d", "/* when: format folded, svg */\nBEGIN { exit(0); }\n");
  const auto verbs = verbs_in({folder.path()});
  const std::vector<VerbText>& texts = verbs.front().texts;
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0].variant, "redis");
  EXPECT_EQ(texts[0].when.kind, VerbCondition::Kind::Program);
  EXPECT_EQ(texts[0].when.words, "redis-*");
  EXPECT_EQ(texts[1].variant, "stacks");
  EXPECT_EQ(texts[1].text_tail, "");
  EXPECT_EQ(texts[2].variant, "");
  EXPECT_THAT(texts[2].text_tail, HasSubstr("all"));
}

TEST(VerbFile, ALaterFolderGoesBeforeAnEarlierOne) {
  const VerbFolder package("package");
  const VerbFolder own("own");
  package.put("reads.clew", "// help: those of the package\nfrom r in syscall(\"read\")\n");
  own.put("reads.clew", "// help: my own\nfrom r in syscall(\"read\")\n");
  const auto verbs = verbs_in({package.path(), own.path()});
  ASSERT_EQ(verbs.size(), 1U);
  EXPECT_EQ(verbs.front().help, "my own");
}

// What a folder with this one file is refused with.
std::string refusal_of(const std::string& name, const std::string& text) {
  const VerbFolder folder("refused");
  folder.put(name, text);
  const auto verbs = verbs_in({folder.path()});
  const bool is_refused = verbs.size() == 1 && verbs.front().problem;
  return is_refused ? verbs.front().problem->message : "";
}

TEST(VerbFile, WrongLinesAreNamedByTheirPlace) {
  EXPECT_THAT(refusal_of("a.clew", "// help: a\n// parameter: least size 1 x\nfrom\n"),
              HasSubstr("a.clew:2: error: a parameter is NAME KIND DEFAULT and what it is"));
  EXPECT_THAT(refusal_of("a.clew", "// help: a\n// needs: wheel\nfrom\n"),
              HasSubstr("a.clew:2: error: 'wheel' is nothing that a verb needs"));
  EXPECT_THAT(refusal_of("a.clew", "// help: a\n// when: moon full\nfrom\n"),
              HasSubstr("a.clew:2: error: a variant is for"));
  EXPECT_THAT(refusal_of("a.clew", "from e in entry(\"f\")\n"),
              HasSubstr("a.clew: error: the comment in front has no line 'help: …'"));
  EXPECT_THAT(refusal_of("a.b.clew", "// when: program a\nfrom\n"),
              HasSubstr("a variant of no verb: there is no a.clew or a.d"));
  EXPECT_THAT(refusal_of("a.clew", std::string(70000, '/')), HasSubstr("at most 64 KiB"));
}

TEST(VerbFile, AFileOrFolderThatIsWrongCostsItsVerbsAlone) {
  const VerbFolder folder("problems");
  folder.put("bad.clew", "// help: a\n// needs: wheel\nfrom\n");
  folder.put("lone.variant.clew", "// when: program a\nfrom\n");
  folder.put("reads.clew", kQuery);
  const Verbs found = read_verbs({"/no/such/folder", folder.path()});
  ASSERT_EQ(found.verbs.size(), 3U);
  EXPECT_TRUE(found.verbs[0].name == "bad" && found.verbs[0].problem);
  EXPECT_TRUE(found.verbs[1].name == "lone" && found.verbs[1].problem);
  EXPECT_TRUE(found.verbs[2].name == "reads" && !found.verbs[2].problem);
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].folder, "/no/such/folder");
  EXPECT_THAT(found.problems[0].error.message,
              HasSubstr("cannot read the verbs in /no/such/folder"));
}

// "every 1s" and their like are put behind it.
TEST(VerbFile, ATextEndsWithItsLastLine) {
  const VerbFolder folder("end");
  folder.put("reads.clew", "// help: reads\nfrom r in syscall(\"read\")  // All of them.");
  folder.put("waits.d", "/*\n * help: waits\n */\nBEGIN { exit(0); }  // At once.");
  folder.put("waits.text.d", "END { printf(\"all\"); }");
  const auto verbs = verbs_in({folder.path()});
  ASSERT_EQ(verbs.size(), 2U);
  EXPECT_THAT(verbs[0].texts[0].text, EndsWith("// All of them.\n"));
  EXPECT_THAT(verbs[1].texts[0].text, EndsWith("// At once.\n"));
  EXPECT_THAT(verbs[1].texts[0].text_tail, EndsWith("}\n"));
}

TEST(VerbFile, AParameterCanHaveAListOfValues) {
  const VerbFolder folder("choices");
  folder.put("waits.d",
             "/*\n * help: waits\n * parameter: kind mutex|all mutex which\n */\nBEGIN {}\n");
  const auto verbs = verbs_in({folder.path()});
  ASSERT_EQ(verbs.size(), 1U);
  ASSERT_EQ(verbs.front().parameters.size(), 1U);
  VerbParameter kind = verbs.front().parameters[0];
  EXPECT_EQ(kind.value, "mutex");
  EXPECT_TRUE(check_choice(kind, "all"));
  kind.value = "al";
  const auto filled = filled_text("${kind}", VerbLanguage::D, {kind});
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().message, "'al' is none of mutex, all");
}

TEST(VerbFile, ValuesStandInTheirPlacesAndNowhereElse) {
  using Kind = VerbParameter::Kind;
  const std::vector<VerbParameter> parameters = {
      {.name = "above", .kind = Kind::Duration, .value = "1.5ms", .words = {}},
      {.name = "name", .kind = Kind::Text, .value = "a\"; exit(1); \"\\", .words = {}}};
  const std::string text = "x > ${above} && n == \"${name}\" $target {}";
  EXPECT_EQ(filled_text(text, VerbLanguage::Query, parameters).value(),
            "x > 1.5ms && n == \"a\\\"; exit(1); \\\"\\\\\" $target {}");
  EXPECT_THAT(filled_text(text, VerbLanguage::D, parameters).value(),
              testing::StartsWith("x > 1500000 && "));
}

TEST(VerbFile, ValuesThatTheirKindDoesNotAllowAreRefused) {
  using Kind = VerbParameter::Kind;
  const auto refused = [](Kind kind, const char* value) {
    const auto filled = filled_text("${x}", VerbLanguage::Query,
                                    {{.name = "x", .kind = kind, .value = value, .words = {}}});
    return filled ? "" : filled.error().message;
  };
  EXPECT_THAT(refused(Kind::Number, "1 or 1"), EndsWith("'1 or 1' is no whole number"));
  EXPECT_THAT(refused(Kind::Duration, "1"), HasSubstr("is not a duration"));
  EXPECT_THAT(refused(Kind::Text, "two\nlines"), HasSubstr("a text of one line"));
  const auto unknown = filled_text("${y}", VerbLanguage::Query, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "${y} is no parameter of this verb");
}

}  // namespace
}  // namespace clew::cmd
