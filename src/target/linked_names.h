// SPDX-License-Identifier: Apache-2.0
// What a file's dynamic tables say by name: which functions it exports, and which words its loader
// fills with whose addresses. Little of the file is read for that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "target/module_image.h"

namespace clew::target {

class ElfFile;

struct ExportedFunction {
  std::string name;      // Without a version.
  uint64_t address = 0;  // 0 where it is not sure: an IFUNC, a label, several versions.
};

struct LinkedNames {
  std::vector<ExportedFunction> exports;  // By name, each once.
  std::vector<ImportSlot> imports;        // In the order of the file.
};

// Errors: as ModuleImage::read(), and Io when the tables cannot be read.
Expected<LinkedNames> read_linked_names(const std::string& path);
Expected<LinkedNames> linked_names_of(const ElfFile& file);

}  // namespace clew::target
