// SPDX-License-Identifier: Apache-2.0
// Catalog: all that can be traced in one process (or in one file, offline), found by the names a
// user would type. It owns the images of the modules and reads each when it is first needed.
//
// A pattern is `function` or `module!function`; each half takes `*`, `?` and `[..]`.
//   module    matches the file name, the path (when it has a '/'), the soname, these without what
//             follows ".so" (`libc`), and for the main program the names that lead to it: the first
//             argument, comm, and symbolic links beside it or on PATH that resolve to it. Debian's
//             redis-server is a link to redis-check-rdb, and `redis-server!…` finds it.
//   function  matches a plain or a linkage name; with `(` or a space in it, the full demangled
//   name.
//             `f` also finds the compiler's copies of f (f.isra.0, f.constprop.0), not its parts.
//
// Not thread-safe. Module and function indices stay valid for the life of the catalog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/module_image.h"
#include "target/process.h"
#include "target/types.h"
#include "target/usdt.h"

namespace clew::target {

// The files that several catalogs share: each is read once, whichever process is asked for it
// first, and stays until the last of them is gone. What is held open under one identity is one
// file.
class SharedFiles;
std::shared_ptr<SharedFiles> make_shared_files();

struct CatalogOptions {
  ReadOptions read;
  std::shared_ptr<SharedFiles> files = nullptr;  // Shared by catalogs; none = its own.
  // PATH of the caller: where links to the main program are looked for.
  std::string search_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
};

// The options a command uses: the cache in $XDG_CACHE_HOME/clew or ~/.cache/clew, PATH from the
// environment.
CatalogOptions default_catalog_options();

struct CatalogModule {
  ProcessModule file;        // Offline: path and open_path are the given path, the bias is 0.
  std::string display_name;  // What answers call it: `redis-server`, `libc.so.6`.
  bool is_loaded = true;     // False once refresh() found it gone.
};

struct FunctionMatch {
  size_t module = 0;    // Index in Catalog::modules().
  size_t function = 0;  // Index in image(module)->functions().
  bool operator==(const FunctionMatch&) const = default;
};

// An address in words.
struct SymbolisedAddress {
  size_t module = 0;
  std::optional<size_t> function;  // Nothing: between functions.
  uint64_t offset = 0;   // From the function's address; in a cold part it may wrap (use `is_cold`).
                         // Without a function, or a name of it: from the module's load bias.
  bool is_cold = false;  // In a cold part: `offset` is from the start of that part.
  std::string text;      // `redis-server!lookupKey+0x1c`
};

class Catalog {
 public:
  static Expected<Catalog> of_process(pid_t pid, const CatalogOptions& options = {});
  static Expected<Catalog> of_file(const std::string& path, const CatalogOptions& options = {});

  Catalog(Catalog&&) noexcept;
  Catalog& operator=(Catalog&&) noexcept;
  ~Catalog();

  [[nodiscard]] pid_t pid() const;                       // 0 offline.
  [[nodiscard]] const Incarnation& incarnation() const;  // Of the process when it was read.
  [[nodiscard]] std::span<const CatalogModule> modules() const;

  // The image, read at the first call; its error is kept and given again. Valid as long as the
  // catalog (or the files that it shares), also when the catalog is moved.
  Expected<const ModuleImage*> image(size_t module);

  // The static probes of a module, read at the first call; none when the file cannot be read. Valid
  // as long as the catalog, also when it is moved.
  std::span<const StaticProbe> static_probes(size_t module);

  // Looks at the process again. The indices of modules that were not there before; they come after
  // those that were. Modules that are gone stay in the list with is_loaded false, and are theirs
  // again when the same file, unchanged, comes back to the same place.
  Expected<std::vector<size_t>> refresh();
  // The modules with this bias went away since the last look, whatever is there now: refresh()
  // gives them as new ones.
  void note_gone(uint64_t load_bias);

  // All that match, by module and then address; none is an empty list. Modules that cannot be read
  // are left out (image() says why). InvalidQuery for a broken pattern.
  Expected<std::vector<FunctionMatch>> find(std::string_view pattern);
  // The same for the left half alone: indices of modules.
  Expected<std::vector<size_t>> find_modules(std::string_view pattern);

  // Why find(pattern) is empty, with the nearest names: "no function 'charge_crad' in shopd; did
  // you mean 'charge_card'?" NotFound.
  Error explain_no_match(std::string_view pattern);
  // The existing function name that was probably meant, without the module; empty when none is
  // near.
  std::string nearest(std::string_view pattern);

  // What an IFUNC's resolver chose, read from the slots that the loader filled in the process. When
  // no slot tells (offline, nobody imports it, nobody has called it yet): every implementation that
  // it may choose, and `is_guess` is true.
  struct IfuncTargets {
    std::vector<FunctionMatch> functions;
    bool is_guess = false;
  };
  Expected<IfuncTargets> ifunc_targets(FunctionMatch ifunc);

  // A run-time address (offline: the file's). Nothing when no module covers it.
  std::optional<SymbolisedAddress> symbolise(uint64_t address);
  [[nodiscard]] std::optional<size_t> module_at(uint64_t address) const;
  // `server.c:120`, from the line table; nothing when there is none.
  std::optional<SourceLine> source_line(uint64_t address);

  [[nodiscard]] uint64_t runtime_address(size_t module, uint64_t file_address) const;
  [[nodiscard]] std::string display(FunctionMatch match);  // `module!function`

  // DWARF of a module, opened at the first call. NotFound when it has none: the message says which
  // package or file would have it. Valid as long as the catalog.
  Expected<DebugInfo*> debug_info(size_t module);

 private:
  struct Data;
  explicit Catalog(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace clew::target
