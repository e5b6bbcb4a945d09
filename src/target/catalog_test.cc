// SPDX-License-Identifier: Apache-2.0
#include "target/catalog.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

Catalog open_file(const std::string& path) {
  auto catalog = Catalog::of_file(path);
  if (!catalog) {
    ADD_FAILURE() << catalog.error().message;
    std::abort();
  }
  return std::move(*catalog);
}

Catalog open_process(pid_t pid, const CatalogOptions& options = {}) {
  auto catalog = Catalog::of_process(pid, options);
  if (!catalog) {
    ADD_FAILURE() << catalog.error().message;
    std::abort();
  }
  return std::move(*catalog);
}

std::vector<std::string> names(Catalog& catalog, std::string_view pattern) {
  std::vector<std::string> result;
  const auto found = catalog.find(pattern);
  EXPECT_TRUE(found) << pattern;
  for (const FunctionMatch& match : *found) {
    result.push_back(catalog.display(match));
  }
  return result;
}

using Names = std::vector<std::string>;

TEST(CatalogTest, FunctionsAreFoundByPlainLinkageAndFullNames) {
  Catalog catalog = open_file(test::fixture("classes"));
  EXPECT_EQ(names(catalog, "shop::risky"), Names{"classes!shop::risky"});
  EXPECT_EQ(names(catalog, "classes!shop::ris?y"), Names{"classes!shop::risky"});
  EXPECT_EQ(names(catalog, "_ZN4shop5twiceIiEET_S1_"), Names{"classes!shop::twice<int>"});
  EXPECT_EQ(names(catalog, "shop::Order::price").size(), 2U);
  EXPECT_EQ(names(catalog, "shop::Order::price(int) const"), Names{"classes!shop::Order::price"});
  EXPECT_EQ(names(catalog, "shop::Order::operator<"), Names{"classes!shop::Order::operator<"});
  EXPECT_EQ(names(catalog, "clas*!main"), Names{"classes!main"});
  EXPECT_EQ(names(catalog, "other!main"), Names{});
  EXPECT_FALSE(catalog.find("shop::[x"));
  EXPECT_FALSE(catalog.find("classes!"));
}

TEST(CatalogTest, ACopyThatTheCompilerMadeIsFoundButAPartIsNot) {
  Catalog catalog = open_file(test::fixture("shop"));
  EXPECT_EQ(names(catalog, "discount"), Names{"shop!discount"});
  EXPECT_EQ(names(catalog, "refund.cold"), Names{});
}

TEST(CatalogTest, AMissingFunctionIsAnsweredWithTheNearestName) {
  Catalog catalog = open_file(test::fixture("shop"));
  EXPECT_EQ(catalog.explain_no_match("charge_crad").message,
            "no function 'charge_crad' in shop; did you mean 'charge_card'?");
  EXPECT_EQ(catalog.nearest("shop!refnud"), "refund");
  EXPECT_EQ(catalog.explain_no_match("shpo!refund").message,
            "no module 'shpo' in shop; did you mean 'shop'?");
  EXPECT_EQ(catalog.explain_no_match("zz*zz").message, "no function that matches 'zz*zz' in shop");
}

TEST(CatalogTest, AProgramIsFoundByEveryNameThatLeadsToIt) {
  const test::TemporaryDirectory directory;
  const std::string program = directory.file("check-shop");
  std::filesystem::copy_file(test::fixture("shop"), program);
  std::filesystem::create_symlink("check-shop", directory.file("shop-server"));
  std::filesystem::create_symlink("check-shop", directory.file("beside"));
  const test::TemporaryDirectory elsewhere;
  std::filesystem::create_symlink(program, elsewhere.file("on-path"));
  const test::Child child({directory.file("shop-server"), "x"});
  CatalogOptions options;
  options.search_path = elsewhere.path();
  Catalog catalog = open_process(child.pid(), options);
  EXPECT_EQ(catalog.modules()[0].display_name, "shop-server");
  for (const std::string_view name :
       {"check-shop", "shop-server", "beside", "on-path", "on-p*", "shop-s*"}) {
    EXPECT_EQ(names(catalog, fmt::format("{}!refund", name)), Names{"shop-server!refund"}) << name;
  }
  EXPECT_EQ(names(catalog, "off-path!refund"), Names{});
}

TEST(CatalogTest, ATitleThatAProgramGivesItselfIsANameButNotItsModules) {
  const test::Child child({"seller: worker 3"}, test::fixture("shop"));
  Catalog catalog = open_process(child.pid());
  EXPECT_EQ(catalog.modules()[0].display_name, "shop");
  EXPECT_EQ(names(catalog, "seller!refund"), Names{"shop!refund"});
}

TEST(CatalogTest, LibrariesAreFoundByFileSonameAndStem) {
  const test::Child child({test::fixture("shop")});
  Catalog catalog = open_process(child.pid());
  for (const std::string_view name : {"libc.so.6", "libc", "libc.*"}) {
    EXPECT_EQ(names(catalog, fmt::format("{}!getenv", name)), Names{"libc.so.6!getenv"}) << name;
  }
  EXPECT_EQ(names(catalog, "refund"), Names{"shop!refund"});
}

TEST(CatalogTest, AnIfuncLeadsToWhatTheLoaderChose) {
  const test::Child child({test::fixture("shop")});
  Catalog catalog = open_process(child.pid());
  const auto scale = catalog.find("shop!scale");
  ASSERT_TRUE(scale);
  ASSERT_EQ(scale->size(), 1U);
  const auto targets = catalog.ifunc_targets(scale->front());
  ASSERT_TRUE(targets);
  EXPECT_FALSE(targets->is_guess);
  ASSERT_EQ(targets->functions.size(), 1U);
  EXPECT_EQ(catalog.display(targets->functions[0]), "shop!scale_large");
}

// Nobody has called it yet, or whoever did got its address by dlsym().
TEST(CatalogTest, AnIfuncThatNobodyHasBoundLeadsToAllThatItMayChoose) {
  auto catalog = Catalog::of_file(test::fixture("shop"));
  ASSERT_TRUE(catalog);
  const auto scale = catalog->find("shop!scale");
  ASSERT_TRUE(scale);
  ASSERT_EQ(scale->size(), 1U);
  const auto targets = catalog->ifunc_targets(scale->front());
  ASSERT_TRUE(targets);
  EXPECT_TRUE(targets->is_guess);
  std::set<std::string> found;
  for (const FunctionMatch& target : targets->functions)
    found.insert(catalog->display(target));
  EXPECT_TRUE(found.contains("shop!scale_large"));
}

TEST(CatalogTest, AnIfuncOfLibcLeadsToWhatAProgramCalls) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer puts a function of its own before strlen";
  Catalog catalog = open_process(getpid());
  const auto found = catalog.find("libc.so.6!strlen");
  ASSERT_TRUE(found);
  const auto ifunc = std::find_if(found->begin(), found->end(), [&](const FunctionMatch& match) {
    return (*catalog.image(match.module))->functions()[match.function].is_ifunc;
  });
  if (ifunc == found->end()) GTEST_SKIP() << "strlen of this libc is no IFUNC";
  const auto targets = catalog.ifunc_targets(*ifunc);
  ASSERT_TRUE(targets);
  ASSERT_FALSE(targets->is_guess);
  std::set<uint64_t> addresses;
  for (const FunctionMatch& target : targets->functions) {
    const ModuleImage* image = *catalog.image(target.module);
    addresses.insert(
        catalog.runtime_address(target.module, image->functions()[target.function].address));
  }
  const auto called = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "strlen"));
  EXPECT_TRUE(addresses.contains(called));
}

TEST(CatalogTest, AddressesAreGivenInWords) {
  const test::Child child({test::fixture("shop")});
  Catalog catalog = open_process(child.pid());
  const auto match = catalog.find("shop!refund")->front();
  const Function& refund = (*catalog.image(match.module))->functions()[match.function];
  const uint64_t address = catalog.runtime_address(match.module, refund.address);
  EXPECT_EQ(catalog.symbolise(address)->text, "shop!refund");
  EXPECT_EQ(catalog.symbolise(address + 3)->text, "shop!refund+0x3");
  EXPECT_EQ(catalog.symbolise(address)->function, match.function);
  if (!refund.cold.empty()) {
    const uint64_t cold = catalog.runtime_address(match.module, refund.cold[0].address);
    EXPECT_EQ(catalog.symbolise(cold + 2)->text, "shop!refund.cold+0x2");
    EXPECT_TRUE(catalog.symbolise(cold)->is_cold);
  }
  EXPECT_FALSE(catalog.symbolise(8));
}

TEST(CatalogTest, AFunctionThatIsCalledAfterItsPlaceHasOneOffset) {
  const test::TemporaryDirectory directory;
  const std::string stripped = directory.file("kinds");
  test::run("strip -o " + stripped + " " + test::fixture("kinds"));
  Catalog full = open_file(test::fixture("kinds"));
  const FunctionMatch match = full.find("many")->front();
  const uint64_t address = (*full.image(match.module))->functions()[match.function].address;
  CatalogOptions options;
  options.read.debug_directory = directory.path();
  auto catalog = Catalog::of_file(stripped, options);
  ASSERT_TRUE(catalog) << catalog.error().message;
  const auto place = catalog->symbolise(address + 4);
  ASSERT_TRUE(place && place->function);
  EXPECT_EQ(place->text, fmt::format("kinds+{:#x}", address + 4));
  EXPECT_EQ(place->offset, address + 4);
}

TEST(CatalogTest, AModuleThatIsLoadedLaterIsFoundByRefresh) {
  Catalog catalog = open_process(getpid());
  EXPECT_EQ(names(catalog, "plugin_answer"), Names{});
  EXPECT_TRUE(catalog.refresh()->empty());
  void* plugin = dlopen(test::fixture("libplugin.so.1.2").c_str(), RTLD_NOW);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto added = catalog.refresh();
  ASSERT_TRUE(added);
  ASSERT_EQ(added->size(), 1U);
  const size_t module = added->front();
  for (const std::string_view name : {"libplugin.so.1.2", "libplugin.so.1", "libplugin"}) {
    const auto found = catalog.find(fmt::format("{}!plugin_answer", name));
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1U) << name;
    const Function& function = (*catalog.image(module))->functions()[found->front().function];
    EXPECT_EQ(catalog.runtime_address(module, function.address),
              reinterpret_cast<uint64_t>(dlsym(plugin, "plugin_answer")));
  }
  dlclose(plugin);
  EXPECT_TRUE(catalog.refresh()->empty());
  EXPECT_FALSE(catalog.modules()[module].is_loaded);
  EXPECT_EQ(names(catalog, "plugin_answer"), Names{});
}

TEST(CatalogTest, AModuleThatComesBackIsTheSameUnlessItsFileWasWrittenOver) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/libplugin.so";
  std::filesystem::copy_file(test::fixture("libplugin.so.1.2"), path);
  Catalog catalog = open_process(getpid());
  const auto load = [&] {
    void* plugin = dlopen(path.c_str(), RTLD_NOW);
    EXPECT_NE(plugin, nullptr) << dlerror();
    const auto added = catalog.refresh();
    EXPECT_EQ(added->size(), 1U);
    EXPECT_TRUE(catalog.image(added->front()));
    dlclose(plugin);
    EXPECT_TRUE(catalog.refresh()->empty());
    return added->front();
  };
  const size_t first = load();
  EXPECT_EQ(load(), first);
  std::ofstream(path, std::ios::app) << "another";
  EXPECT_NE(load(), first);
}

TEST(CatalogTest, AModuleThatNobodySawGoingIsFoundAgain) {
  void* plugin = dlopen(test::fixture("libplugin.so.1.2").c_str(), RTLD_NOW);
  ASSERT_NE(plugin, nullptr) << dlerror();
  Catalog catalog = open_process(getpid());
  const auto module = catalog.find_modules("libplugin")->front();
  EXPECT_TRUE(catalog.refresh()->empty());
  catalog.note_gone(catalog.modules()[module].file.load_bias);
  EXPECT_EQ(*catalog.refresh(), std::vector<size_t>{module});
  EXPECT_TRUE(catalog.modules()[module].is_loaded);
  dlclose(plugin);
}

TEST(CatalogTest, SourceLinesComeFromDebugInformation) {
  Catalog catalog = open_file(test::fixture("kinds_unoptimised"));
  const auto match = catalog.find("use_client")->front();
  const Function& function = (*catalog.image(0))->functions()[match.function];
  const auto source = catalog.source_line(function.address);
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->file.ends_with("kinds.c")) << source->file;
  EXPECT_EQ(source->line + 1, test::marked_line("kinds.c", "use_client body"));
}

TEST(CatalogTest, WithoutDebugInformationTheErrorSaysWhatWouldHelp) {
  Catalog catalog = open_file(test::fixture("shop"));
  const auto debug = catalog.debug_info(0);
  ASSERT_FALSE(debug);
  EXPECT_EQ(debug.error().code, ErrorCode::NotFound);
  EXPECT_NE(debug.error().message.find("-dbgsym"), std::string::npos);
}

TEST(CatalogTest, AProcessThatIsGoneIsNotFound) {
  EXPECT_EQ(Catalog::of_process(0x3fffffff).error().code, ErrorCode::NotFound);
  auto child = std::make_unique<test::Child>(Names{test::fixture("shop")});
  Catalog catalog = open_process(child->pid());
  child.reset();
  EXPECT_EQ(catalog.refresh().error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace clew::target
