// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_line_files.h"

#include <optional>
#include <vector>

#include <dwarf.h>

#include "base/file_name.h"
#include "target/byte_reader.h"

namespace clew::target {

namespace {

constexpr uint64_t kFilesMax = 1'000'000;

class HeaderReader {
 public:
  HeaderReader(const LineSections& sections, uint64_t offset)
      : sections_(sections), reader_(sections.line, offset) {}

  bool read(const std::function<bool(std::string_view)>& visit) {
    const uint64_t version = read_start();
    if (reader_.failed() || version < 2 || version > 5) return false;
    return version < 5 ? read_old_files(visit) : read_new_files(visit);
  }

 private:
  // Everything before the directories. The version.
  uint64_t read_start() {
    uint64_t length = reader_.read<uint32_t>();
    is_64_bit_ = length == UINT32_MAX;
    if (is_64_bit_) length = reader_.read<uint64_t>();
    const auto version = reader_.read<uint16_t>();
    if (version >= 5) reader_.skip(2);  // Sizes of an address and of a segment selector.
    read_offset();                      // The header's length.
    reader_.skip(1);                    // The least size of an instruction.
    if (version >= 4) reader_.skip(1);  // Operations in one instruction.
    reader_.skip(3);                    // Is a statement, line base, line range.
    const auto opcode_base = reader_.read<uint8_t>();
    if (opcode_base > 0) reader_.skip(opcode_base - 1U);
    return version;
  }

  uint64_t read_offset() {
    return is_64_bit_ ? reader_.read<uint64_t>() : reader_.read<uint32_t>();
  }

  // Directories, then files with three numbers each; an empty name ends either list.
  bool read_old_files(const std::function<bool(std::string_view)>& visit) {
    while (!reader_.failed() && !reader_.read_string().empty()) {
    }
    while (!reader_.failed()) {
      const std::string_view name = reader_.read_string();
      if (name.empty()) break;
      if (!visit(file_name_of(name))) return true;
      reader_.read_uleb128();
      reader_.read_uleb128();
      reader_.read_uleb128();
    }
    return !reader_.failed();
  }

  struct Field {
    uint64_t content = 0;
    uint64_t form = 0;
  };

  std::vector<Field> read_format() {
    std::vector<Field> fields(reader_.read<uint8_t>());
    for (Field& field : fields) {
      field.content = reader_.read_uleb128();
      field.form = reader_.read_uleb128();
    }
    return fields;
  }

  // Two tables that describe themselves: directories, then files.
  bool read_new_files(const std::function<bool(std::string_view)>& visit) {
    for (const bool is_files : {false, true}) {
      const std::vector<Field> format = read_format();
      const uint64_t count = reader_.read_uleb128();
      if (count > kFilesMax) return false;
      for (uint64_t i = 0; i < count && !format.empty(); ++i) {
        const auto name = read_entry(format);
        if (!name || reader_.failed()) return false;
        if (is_files && !visit(file_name_of(*name))) return true;
      }
    }
    return !reader_.failed();
  }

  // Its path; nothing when a form is not known.
  std::optional<std::string_view> read_entry(const std::vector<Field>& format) {
    std::string_view path;
    for (const Field& field : format) {
      std::string_view text;
      if (!read_form(field.form, text)) return std::nullopt;
      if (field.content == DW_LNCT_path) path = text;
    }
    return path;
  }

  bool read_form(uint64_t form, std::string_view& text) {
    switch (form) {
      case DW_FORM_string:
        text = reader_.read_string();
        return true;
      case DW_FORM_line_strp:
        text = ByteReader(sections_.line_string, read_offset()).read_string();
        return true;
      case DW_FORM_strp:
        text = ByteReader(sections_.string, read_offset()).read_string();
        return true;
      case DW_FORM_udata:
        reader_.read_uleb128();
        return true;
      case DW_FORM_data1:
        reader_.skip(1);
        return true;
      case DW_FORM_data2:
        reader_.skip(2);
        return true;
      case DW_FORM_data4:
        reader_.skip(4);
        return true;
      case DW_FORM_data8:
        reader_.skip(8);
        return true;
      case DW_FORM_data16:
        reader_.skip(16);
        return true;
      case DW_FORM_block:
        reader_.skip(reader_.read_uleb128());
        return true;
      default:
        return false;
    }
  }

  const LineSections& sections_;
  ByteReader reader_;
  bool is_64_bit_ = false;
};

}  // namespace

bool for_each_line_file(const LineSections& sections, uint64_t offset,
                        const std::function<bool(std::string_view)>& visit) {
  return HeaderReader(sections, offset).read(visit);
}

}  // namespace clew::target
