// SPDX-License-Identifier: Apache-2.0
// The format: lines `-- name` start a section, other lines belong to the section before them, and
// `#` starts a comment except inside `asm`, which has its own.
#include "isa/conformance_vectors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "isa/opcode.h"

namespace clew::isa {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

using Sections = std::map<std::string, std::string>;

Sections split_sections(const std::string& text) {
  Sections sections;
  std::string* section = nullptr;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("-- ")) {
      section = &sections[line.substr(3)];
    } else if (section) {
      *section += line + '\n';
    }
  }
  return sections;
}

Expected<std::vector<uint8_t>> parse_bytes(const std::string& text) {
  std::vector<uint8_t> bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), byte, 16);
    const bool valid = error == std::errc() && end == word.data() + word.size();
    if (!valid) return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is not a byte", word));
    bytes.push_back(byte);
  }
  return bytes;
}

Expected<std::vector<Instruction>> parse_code(const std::string& text) {
  const std::vector<uint8_t> bytes = CLEW_TRY(parse_bytes(text));
  if (bytes.size() % sizeof(Instruction) != 0) {
    return fail(ErrorCode::InvalidQuery, "the code is not made of 8-byte instructions");
  }
  std::vector<Instruction> code(bytes.size() / sizeof(Instruction));
  if (!code.empty()) std::memcpy(code.data(), bytes.data(), bytes.size());
  return code;
}

Expected<uint64_t> parse_result(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  const size_t skip = word.starts_with("0x") ? 2 : 0;
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(word.data() + skip, word.data() + word.size(), value, skip == 0 ? 10 : 16);
  const bool valid = error == std::errc() && end == word.data() + word.size();
  if (!valid) return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is not a result", word));
  return value;
}

Expected<ConformanceVector> load_vector(const std::filesystem::path& path) {
  ConformanceVector vector;
  vector.name = path.stem().string();
  Sections sections = split_sections(read_file(path));
  vector.assembly = sections["asm"];
  vector.memory = CLEW_TRY(parse_bytes(sections["mem"]));
  std::filesystem::path assembled = path;
  assembled.replace_extension(".hex");
  const bool has_hex = std::filesystem::exists(assembled);
  vector.code = CLEW_TRY(parse_code(has_hex ? read_file(assembled) : sections["raw"]));
  if (sections.contains("result")) vector.result = CLEW_TRY(parse_result(sections["result"]));
  if (sections.contains("error")) {
    std::string text = sections["error"];
    text.erase(text.find_last_not_of(" \n") + 1);
    vector.error = text;
  }
  return vector;
}

bool is_division_or_product(Instruction i) {
  const Alu op = alu_of(i);
  return op == Alu::Multiply || op == Alu::Divide || op == Alu::Modulo;
}

const char* group_of(Instruction i) {
  switch (class_of(i)) {
    case Class::Alu32:
      return is_division_or_product(i) ? "divmul32" : "base32";
    case Class::Alu64:
      return is_division_or_product(i) ? "divmul64" : "base64";
    case Class::Jump32:
      return "base32";
    case Class::Jump64:
      if (jump_of(i) == Jump::Call && has_register_source(i)) return "callx";
      return jump_of(i) == Jump::Call || jump_of(i) == Jump::Exit ? "base32" : "base64";
    case Class::Stx:
      if (mode_of(i) == Mode::Atomic) return size_of(i) == Size::Double ? "atomic64" : "atomic32";
      break;
    case Class::Ld:
    case Class::Ldx:
    case Class::St:
      break;
  }
  return size_of(i) == Size::Double ? "base64" : "base32";
}

}  // namespace

Expected<std::vector<ConformanceVector>> load_conformance_vectors(const std::string& folder) {
  std::error_code error;
  std::vector<ConformanceVector> vectors;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".data") continue;
    vectors.push_back(CLEW_TRY(load_vector(entry.path())));
  }
  if (error) return fail(ErrorCode::NotFound, fmt::format("{}: {}", folder, error.message()));
  std::sort(vectors.begin(), vectors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return vectors;
}

std::vector<std::string> conformance_groups(const std::vector<Instruction>& code) {
  std::set<std::string_view> needed;
  for (size_t at = 0; at < code.size(); ++at) {
    needed.insert(group_of(code[at]));
    if (code[at].opcode == kLoad64Opcode) ++at;
  }
  return {needed.begin(), needed.end()};
}

}  // namespace clew::isa
