// SPDX-License-Identifier: Apache-2.0
// The analysis input of a real module: what target::ModuleImage knows, in the analysis' own terms.
#pragma once

#include "base/error.h"
#include "code/module_text.h"
#include "target/module_image.h"

namespace clew::code {

// Borrows the image's section bytes: the image must outlive the result and any ModuleCode made from
// it. Errors: Io when the file was truncated since it was read.
Expected<ModuleText> text_of(const target::ModuleImage& image);

}  // namespace clew::code
