// SPDX-License-Identifier: Apache-2.0
#include "target/btf.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <linux/btf.h>
#include <unistd.h>

#include "target/test_support.h"

namespace clew::target {
namespace {

// The kernel's types; tests that need them are skipped where there are none.
class KernelTypes : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Btf::of_kernel();
    if (!opened) GTEST_SKIP() << opened.error().message;
    btf_ = std::make_unique<Btf>(std::move(*opened));
  }
  [[nodiscard]] const Btf& btf() const { return *btf_; }

 private:
  std::unique_ptr<Btf> btf_;
};

bool has_program(const std::string& name) {
  return access(("/usr/sbin/" + name).c_str(), X_OK) == 0 ||
         access(("/usr/bin/" + name).c_str(), X_OK) == 0;
}

// The lines of a struct in the kernel's own tool's words: "'comm' type_id=9 bits_offset=123".
std::vector<std::string> dumped_members(const std::string& record) {
  const std::string dump = test::run("bpftool btf dump file /sys/kernel/btf/vmlinux");
  const size_t begin = dump.find("STRUCT '" + record + "'");
  const size_t lines = dump.find('\n', begin) + 1;
  size_t end = lines;
  while (end < dump.size() && dump[end] == '\t')
    end = dump.find('\n', end) + 1;
  return test::lines_of(dump.substr(lines, end - lines));
}

TEST_F(KernelTypes, HaveTheMembersOfATaskWhereAnotherReaderFindsThem) {
  ASSERT_TRUE(has_program("bpftool"));
  const BtfId task = btf().find(BtfKind::Struct, "task_struct");
  ASSERT_NE(task, kBtfVoid);
  std::vector<std::string> ours;
  for (const BtfMember& member : btf().members(task)) {
    std::string line = "\t'" + std::string(member.name.empty() ? "(anon)" : member.name) +
                       "' type_id=" + std::to_string(member.type) +
                       " bits_offset=" + std::to_string(member.offset_bits);
    if (member.bit_size != 0) line += " bitfield_size=" + std::to_string(member.bit_size);
    ours.push_back(std::move(line));
  }
  EXPECT_EQ(ours, dumped_members("task_struct"));
}

TEST_F(KernelTypes, GiveTheIntegersOfC) {
  const BtfType type = btf().at(btf().find(BtfKind::Integer, "int"));
  EXPECT_EQ(type.kind, BtfKind::Integer);
  EXPECT_EQ(type.size_bytes, 4U);
  EXPECT_TRUE(type.is_signed);
  EXPECT_TRUE(btf().at(btf().find(BtfKind::Integer, "_Bool")).is_boolean);
}

TEST_F(KernelTypes, LookThroughAnonymousMembersAndDots) {
  const BtfId sock = btf().find(BtfKind::Struct, "sock");
  const auto state = btf().member(sock, "__sk_common.skc_state");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(btf().at(btf().strip(state->type)).size_bytes, 1U);
  // skc_dport is in an anonymous struct in an anonymous union of sock_common.
  const auto port = btf().member(sock, "__sk_common.skc_dport");
  ASSERT_TRUE(port.has_value());
  EXPECT_EQ(port->offset_bits % 16, 0U);
  EXPECT_FALSE(btf().member(sock, "__sk_common.no_such").has_value());
}

TEST_F(KernelTypes, FindEnumeratorsOfAnyEnumeration) {
  const auto found = btf().find_enumerator("PIDTYPE_TGID");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, 1);
  EXPECT_FALSE(btf().find_enumerator("NO_SUCH_ENUMERATOR").has_value());
}

TEST_F(KernelTypes, WriteTypesAsCDoes) {
  const BtfId function = btf().find(BtfKind::Function, "vfs_read");
  ASSERT_NE(function, kBtfVoid);
  const BtfId prototype = btf().at(function).target;
  std::vector<std::string> texts;
  for (const BtfParameter& each : btf().parameters(prototype)) {
    texts.push_back(c_type_text(btf(), each.type));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"struct file *", "char *", "size_t", "loff_t *"}));
  EXPECT_EQ(c_type_text(btf(), btf().at(prototype).target), "ssize_t");
  EXPECT_EQ(c_type_text(btf(), btf().find(BtfKind::Integer, "long unsigned int")), "unsigned long");
  EXPECT_EQ(c_type_text(btf(), kBtfVoid), "void");
}

TEST_F(KernelTypes, KnowNoNameThatIsNotThere) {
  EXPECT_EQ(btf().find(BtfKind::Struct, "no_such_struct"), kBtfVoid);
  EXPECT_EQ(btf().find(BtfKind::Struct, ""), kBtfVoid);
  // A name of another kind does not count.
  EXPECT_EQ(btf().find(BtfKind::Struct, "vfs_read"), kBtfVoid);
  EXPECT_EQ(btf().at(btf().end_id()).kind, BtfKind::Void);
}

TEST_F(KernelTypes, FindEveryNamedTypeAgain) {
  std::map<std::pair<BtfKind, std::string_view>, BtfId> first;
  for (BtfId id = btf().first_id(); id < btf().end_id(); ++id) {
    const BtfType type = btf().at(id);
    if (!type.name.empty()) first.try_emplace({type.kind, type.name}, id);
  }
  ASSERT_GT(first.size(), 10'000U);
  const auto is_wrong = [this](const auto& each) {
    return btf().find(each.first.first, each.first.second) != each.second;
  };
  EXPECT_EQ(std::count_if(first.begin(), first.end(), is_wrong), 0);
}

TEST(Btf, OfAModuleThatIsNotLoadedIsNotFound) {
  const auto kernel = Btf::of_kernel();
  if (!kernel) GTEST_SKIP() << kernel.error().message;
  const auto module = Btf::of_module("no_such_module", *kernel);
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().code, ErrorCode::NotFound);
  EXPECT_FALSE(Btf::of_module("../vmlinux", *kernel).has_value());
}

TEST(Btf, OfAFileThatIsNoBtfIsAnError) {
  const test::TemporaryDirectory directory;
  test::write_file(directory.file("types"), {1, 2, 3, 4});
  EXPECT_FALSE(Btf::open(directory.file("types"), nullptr).has_value());
}

// A section with these words of types behind the header, and these strings.
std::vector<uint8_t> section_of(const std::vector<uint32_t>& types, std::string_view strings,
                                uint32_t header_size = sizeof(btf_header)) {
  const auto types_size = static_cast<uint32_t>(4 * types.size());
  const btf_header header{.magic = BTF_MAGIC,
                          .version = BTF_VERSION,
                          .flags = 0,
                          .hdr_len = header_size,
                          .type_off = 0,
                          .type_len = types_size,
                          .str_off = types_size,
                          .str_len = static_cast<uint32_t>(strings.size())};
  std::vector<uint8_t> bytes(header_size + types_size + strings.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + header_size, types.data(), types_size);
  std::memcpy(bytes.data() + header_size + types_size, strings.data(), strings.size());
  return bytes;
}

constexpr uint32_t info_of(uint32_t kind, uint32_t count) {
  return kind << 24 | count;
}

TEST(TypesOfASection, StandWhereTheyCanBeRead) {
  const std::vector<uint32_t> integer = {1, info_of(BTF_KIND_INT, 0), 4, 32};
  const std::string_view strings("\0int\0", 5);
  const auto aligned = Btf::of_section(section_of(integer, strings));
  ASSERT_TRUE(aligned) << aligned.error().message;
  EXPECT_EQ(aligned->at(1).name, "int");
  EXPECT_TRUE(Btf::of_section(section_of(integer, strings, sizeof(btf_header) + 4)));
  EXPECT_FALSE(Btf::of_section(section_of(integer, strings, sizeof(btf_header) + 1)));
  EXPECT_FALSE(Btf::of_section({}));
}

// Every member without a name is of the same record: all the ways through them have no end.
TEST(TypesOfASection, ThatContainThemselvesAreSearchedInBoundedTime) {
  constexpr uint32_t kMembers = 1000;
  std::vector<uint32_t> record = {1, info_of(BTF_KIND_STRUCT, kMembers), 8};
  for (uint32_t i = 0; i < kMembers; ++i)
    record.insert(record.end(), {0, 1, 0});
  const auto btf = Btf::of_section(section_of(record, {"\0r\0", 3}));
  ASSERT_TRUE(btf) << btf.error().message;
  EXPECT_FALSE(btf->member(1, "nothing").has_value());
}

}  // namespace
}  // namespace clew::target
