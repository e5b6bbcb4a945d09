// SPDX-License-Identifier: Apache-2.0
#include "cluster/certificate.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace clew::cluster {
namespace {

constexpr size_t kNameMax = 128;

struct Frees {
  void operator()(BIO* file) const { (void)BIO_free(file); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
  return text.substr(0, kNameMax);
}

std::string uri_of(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Frees> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
            static_cast<size_t>(ASN1_STRING_length(uri))};
  }
  return {};
}

std::string common_name_of(const X509* certificate) {
  std::array<char, kNameMax> text{};
  (void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text.data(),
                                  static_cast<int>(text.size()));
  return text.data();
}

}  // namespace

std::optional<Certificate> read_certificate(const std::string& path) {
  const std::unique_ptr<BIO, Frees> file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return std::nullopt;
  const std::unique_ptr<X509, Frees> read(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  if (read == nullptr) return std::nullopt;
  Certificate certificate;
  if (X509_cmp_current_time(X509_get0_notBefore(read.get())) > 0)
    certificate.time = Certificate::Time::NotYet;
  if (X509_cmp_current_time(X509_get0_notAfter(read.get())) < 0)
    certificate.time = Certificate::Time::Over;
  const std::string uri = uri_of(read.get());
  certificate.name = printable(uri.empty() ? common_name_of(read.get()) : uri);
  return certificate;
}

}  // namespace clew::cluster
