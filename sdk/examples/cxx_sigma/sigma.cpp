// SPDX-License-Identifier: Apache-2.0
// An observer: the range is the mean and so many standard deviations to each side, within what was
// seen. One pass, by Welford's recurrence; two states are joined as Chan et al. (1979) do.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/observer.hpp"

namespace {

// All that it knows: fixed in size, and its bytes are what save() writes.
struct Moments {
  uint64_t seen = 0, not_finite = 0;
  double mean = 0, squares = 0;  // of the distances to the mean
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double x) {
    ++seen;
    double before = x - mean;
    mean += before / static_cast<double>(seen);
    squares += before * (x - mean);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  void add(const Moments& other) {
    not_finite += other.not_finite;
    if (other.seen == 0) return;
    auto n = static_cast<double>(seen), m = static_cast<double>(other.seen);
    double apart = other.mean - mean;
    mean += apart * m / (n + m);
    squares += other.squares + apart * apart * n * m / (n + m);
    seen += other.seen;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

class Sigma {
 public:
  static tenon::Result<Sigma> create(tn_ctx*, const tenon::Options& options) {
    return Sigma(options.number("sigmas"), options.flag("symmetric"));
  }
  tenon::Status observe(const DLTensor& tensor) {
    TN_TRY(numbers, tenon::numbers_as<double>(tensor));
    for (double x : numbers) {
      if (std::isfinite(x)) {
        moments_.add(x);
      } else {
        ++moments_.not_finite;
      }
    }
    return {};
  }
  tenon::Status save(tenon::Sink& sink) const {
    return sink.write({reinterpret_cast<const char*>(&moments_), sizeof moments_});
  }
  tenon::Status merge(std::string_view saved) {
    Moments other;
    if (saved.size() != sizeof other)
      return tenon::invalid(
          tenon::cat("saved state: expected ", sizeof other, " bytes, got ", saved.size()));
    std::memcpy(&other, saved.data(), sizeof other);
    bool sane = std::isfinite(other.mean) && std::isfinite(other.squares) && other.squares >= 0;
    if (!sane || (other.seen > 0 && !(other.low <= other.high)))
      return tenon::invalid("saved state: expected moments, got other bytes");
    moments_.add(other);
    return {};
  }
  tenon::Result<tn_range> range() const {
    if (moments_.seen == 0)
      return tenon::Status(TN_FAILED_PRECONDITION, "no finite number was seen");
    double reach = sigmas_ * std::sqrt(moments_.squares / static_cast<double>(moments_.seen));
    double low = std::max(moments_.low, moments_.mean - reach);
    double high = std::min(moments_.high, moments_.mean + reach);
    if (symmetric_) {
      high = std::max(std::abs(low), std::abs(high));
      low = -high;
    }
    return tn_range{low, high, moments_.seen, moments_.not_finite};
  }

 private:
  Sigma(double sigmas, bool symmetric) : sigmas_(sigmas), symmetric_(symmetric) {}
  double sigmas_;
  bool symmetric_;
  Moments moments_;
};

}  // namespace

TENON_OBSERVER(sigma,
               Sigma,
               "com.example.sigma",
               "mean and so many standard deviations",
               R"({"properties": {
  "bits": {"type": "integer", "minimum": 2, "maximum": 16, "default": 8, "description": "what the range is for"},
  "symmetric": {"type": "boolean", "default": false, "description": "around zero"},
  "sigmas": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "standard deviations to each side"}}})")
