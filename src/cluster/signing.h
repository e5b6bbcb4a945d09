// SPDX-License-Identifier: Apache-2.0
// Who asks a cluster proves it: each Ask is signed (Ed25519) over all that nodes will do for it,
// the tenant, and for how long that holds; a root hands the signature on, and each node checks it
// itself. Who asks signs anew with each Ask while it listens, so a signature need not hold for
// long, and who has caught one can use it for no other query, text, tenant or time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cluster/message.h"

struct evp_pkey_st;

namespace clew::cluster {

// Of a standing query, whose asker is not there to sign anew.
inline constexpr int64_t kStandingSignedForNs = int64_t{366} * 24 * 3600 * 1'000'000'000;
inline constexpr int64_t kSignedForNs = 300'000'000'000;
inline constexpr int64_t kSkewNs = 30'000'000'000;      // Between two machines' clocks.
inline constexpr int64_t kRenewedNs = 100'000'000'000;  // Nodes get a newer one as often as that.

using PublicKey = std::array<std::byte, 32>;
// Base64, as files of roles have it.
std::string text_of(const PublicKey& key);
// InvalidQuery: it is none.
Expected<PublicKey> public_key_of(std::string_view text);

// The private one.
class SigningKey {
 public:
  static Expected<SigningKey> make();
  // Of a file in PEM, as `openssl genpkey -algorithm ed25519` writes it, too. Refused: others may
  // read or write it.
  static Expected<SigningKey> read(const std::string& path);
  // A new file, for its owner alone; what is there stays as it is.
  [[nodiscard]] Expected<void> write(const std::string& path) const;

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }
  [[nodiscard]] std::array<std::byte, 64> sign(std::span<const std::byte> bytes) const;

 private:
  explicit SigningKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  Expected<void> find_public_key();

  std::shared_ptr<evp_pkey_st> key_;  // Shared, as libcrypto counts who has it.
  PublicKey public_key_{};
};

// Signs `ask` from `now_ns` on (of the time of day).
void sign(Ask& ask, std::string_view tenant, const SigningKey& key, int64_t now_ns);

inline bool is_signed(const Signature& signature) {
  return signature.key != PublicKey{};
}

// Refused, with the reason: it is not signed, not by this key, not of this tenant or not of now, or
// something of it is not as it was signed.
Expected<void> check_signature(const Ask& ask, std::string_view tenant, int64_t now_ns);
// The same of what a root made of it, which is wanted.
Expected<void> check_signature(const Control& want, std::string_view tenant, int64_t now_ns);

// Queries that have ended. Somebody may have kept what was signed of them: it wakes none.
class Ended {
 public:
  void add(const std::string& query, int64_t now_ns);
  // Whether `query` was signed before it ended, or that cannot be said any more.
  [[nodiscard]] bool has(const std::string& query, const Signature& signature);

 private:
  std::map<std::string, int64_t> ended_ns_;
  int64_t all_before_ns_ = INT64_MIN;  // What was signed before is taken for ended.
};

}  // namespace clew::cluster
