/* Functions for a target without libm, in doubles: those of floats round the results. Part of passfit.
 *
 * Sums of Taylor's series after the argument is reduced; relative errors below 1e-12, of floats half a unit in the last place.
 * Source of the forms: W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980. Large angles are
 * reduced with 256 bits of 2/pi: M. H. Payne and R. N. Hanek, Radian Reduction for Trigonometric Functions, 1983. */
#include <stdint.h>

#define SHARED __attribute__((weak, visibility("hidden")))
#define LN2 0.693147180559945309417
#define HALF_PI 1.57079632679489661923

static uint64_t bits_of(double x) {
  union { double value; uint64_t bits; } both = {x};
  return both.bits;
}

static double of_bits(uint64_t bits) {
  union { uint64_t bits; double value; } both = {bits};
  return both.value;
}

static double not_a_number(void) { return of_bits(UINT64_C(0x7FF8) << 48); }
static double infinity(void) { return of_bits(UINT64_C(0x7FF0) << 48); }
static double magnitude(double x) { return of_bits(bits_of(x) & ~(UINT64_C(1) << 63)); }
static double with_sign(double x, double sign) { return of_bits((bits_of(x) & ~(UINT64_C(1) << 63)) | (bits_of(sign) & UINT64_C(1) << 63)); }

/* Returns x * 2**n, for n from -1022 to 1023. */
static double scaled(double x, int n) { return x * of_bits((uint64_t)(n + 1023) << 52); }

/* ---- rounding ---- */

#define TWO_TO_52 4503599627370496.0
#define TWO_TO_23 8388608.0f

/* Numbers of `large` and more are whole; a smaller one that is added to it loses its fraction, by rounding to even. */
#define ROUNDING(real, f, whole_number, large)                                        \
  SHARED real trunc##f(real x) {                                                       \
    if (!(x < large && x > -large)) return x;                                          \
    const real whole = (real)(whole_number)x;                                          \
    return whole == 0 ? x * 0 : whole; /* zero keeps its sign */                       \
  }                                                                                    \
  SHARED real floor##f(real x) {                                                       \
    const real whole = trunc##f(x);                                                    \
    return whole > x ? whole - 1 : whole;                                              \
  }                                                                                    \
  SHARED real ceil##f(real x) {                                                        \
    const real whole = trunc##f(x);                                                    \
    return whole < x ? whole + 1 : whole;                                              \
  }                                                                                    \
  SHARED real nearbyint##f(real x) {                                                   \
    if (!(x < large && x > -large)) return x;                                          \
    const real whole = x < 0 ? x - large + large : x + large - large;                  \
    return whole == 0 ? x * 0 : whole;                                                 \
  }                                                                                    \
  SHARED real rint##f(real x) { return nearbyint##f(x); }                              \
  SHARED real roundeven##f(real x) { return nearbyint##f(x); }                         \
  SHARED real round##f(real x) {                                                       \
    const real whole = trunc##f(x), rest = x - whole;                                  \
    return rest < (real)0.5 && rest > (real)-0.5 ? whole : x != x ? x : x < 0 ? whole - 1 : whole + 1; \
  }

ROUNDING(double, , int64_t, TWO_TO_52)
ROUNDING(float, f, int32_t, TWO_TO_23)

SHARED double fmod(double x, double y) {
  const double divisor = magnitude(y);
  double rest = magnitude(x), part = divisor;
  if (!(rest < infinity()) || divisor != divisor || divisor == 0) return not_a_number();
  if (divisor == infinity()) return x;
  while (part <= rest * 0.5) part *= 2;
  for (; part >= divisor; part *= 0.5) { /* exact: as long division */
    if (rest >= part) rest -= part;
  }
  return with_sign(rest, x);
}

/* Newton's iteration from a quotient of exponents; the last step rounds to within one unit in the last place. */
SHARED double sqrt(double x) {
  if (x < 0) return not_a_number();
  if (!(x > 0 && x < infinity())) return x;
  if (x < 1e-300) return sqrt(x * 0x1p200) * 0x1p-100;
  double root = of_bits((bits_of(x) >> 1) + (UINT64_C(1023) << 51));
  for (int i = 0; i < 5; ++i) root = 0.5 * (root + x / root);
  return root;
}

/* ---- exponentials and logarithms ---- */

SHARED double exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893384) return infinity();
  if (x < -745.2) return 0;
  const int n = (int)nearbyint(x / LN2);
  const double rest = x - n * 0.693147180369123816490 - n * 1.90821492927058770002e-10;
  double sum = 1;
  for (int i = 13; i > 0; --i) sum = 1 + sum * rest / i;
  return scaled(scaled(sum, n / 2), n - n / 2);
}

SHARED double log(double x) {
  if (x < 0) return not_a_number();
  if (x == 0) return -infinity();
  if (!(x < infinity())) return x;
  int n = 0;
  if (x < 0x1p-1000) {
    x *= 0x1p54;
    n = -54;
  }
  n += (int)(bits_of(x) >> 52) - 1023;
  double part = of_bits((bits_of(x) & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
  if (part > 1.41421356237309505) {
    part *= 0.5;
    ++n;
  }
  const double ratio = (part - 1) / (part + 1), square = ratio * ratio;
  double sum = 0;
  for (int i = 17; i > 0; i -= 2) sum = sum * square + 2.0 / i;
  return n * LN2 + ratio * sum;
}

static double power(double base, double exponent) {
  if (magnitude(exponent) > 64 || trunc(exponent) != exponent) return exp(exponent * log(base));
  double result = 1; /* whole powers of whole numbers are exact */
  for (int left = (int)magnitude(exponent); left; left /= 2) {
    if (left & 1) result *= base;
    base *= base;
  }
  return exponent < 0 ? 1 / result : result;
}

SHARED double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return not_a_number();
  const double size = magnitude(x);
  const int whole = trunc(y) == y, odd = whole && trunc(y * 0.5) * 2 != y;
  if (magnitude(y) == infinity()) return size == 1 ? 1 : (size > 1) == (y > 0) ? infinity() : 0;
  if (size == 0 || size == infinity()) return with_sign((size == 0) == (y > 0) ? 0 : infinity(), odd ? x : 1);
  if (x < 0 && !whole) return not_a_number();
  return with_sign(power(size, y), odd ? x : 1);
}

SHARED double sinh(double x) {
  if (magnitude(x) < 0.5) { /* the difference of two exponentials would cancel */
    double sum = 1;
    for (int i = 12; i > 0; i -= 2) sum = 1 + sum * x * x / (i * (i + 1));
    return x * sum;
  }
  const double half = exp(0.5 * magnitude(x)), large = half * half;
  return with_sign(magnitude(x) > 700 ? 0.5 * half * half : 0.5 * (large - 1 / large), x);
}
SHARED double cosh(double x) {
  const double half = exp(0.5 * magnitude(x)), large = half * half;
  return magnitude(x) > 700 ? 0.5 * half * half : 0.5 * (large + 1 / large);
}
SHARED double tanh(double x) {
  const double large = exp(-2 * magnitude(x));
  return magnitude(x) < 0.5 ? sinh(x) / cosh(x) : with_sign((1 - large) / (1 + large), x);
}

/* A sum without cancellation: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6. */
SHARED double erf(double x) {
  if (!(magnitude(x) < 6)) return x != x ? x : with_sign(1, x);
  double term = x, sum = x;
  for (int i = 3; i < 300; i += 2) sum += term *= 2 * x * x / i;
  return sum * exp(-x * x) * 1.12837916709551257390;
}

/* Returns log(1 + x), without the rounding of the sum. */
static double log_above(double x) {
  const double sum = 1 + x;
  return sum == 1 || !(sum < infinity()) ? x : log(sum) * (x / (sum - 1));
}
SHARED double asinh(double x) {
  const double size = magnitude(x);
  if (size > 1e8) return with_sign(log(size) + LN2, x);
  return with_sign(log_above(size + size * size / (1 + sqrt(1 + size * size))), x);
}
SHARED double acosh(double x) {
  if (x > 1e8) return log(x) + LN2;
  return x < 1 ? not_a_number() : log_above(x - 1 + sqrt((x - 1) * (x + 1)));
}

/* ---- angles ---- */

/* Bits of 2/pi, from 64 before the point. */
static const uint32_t inverse[] = {0, 0, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu, 0xDEBBC561u};

/* Returns number * 2**exponent * 2/pi, modulo 4, in units of 2**-62. */
static uint64_t turns(uint64_t number, int exponent) {
  const int bit = exponent - 2 + 64, word = bit / 32, shift = bit % 32; /* bits before count whole turns */
  uint64_t high = (uint64_t)inverse[word] << 32 | inverse[word + 1];
  uint64_t low = (uint64_t)inverse[word + 2] << 32 | inverse[word + 3];
  if (shift) {
    high = high << shift | low >> (64 - shift);
    low <<= shift;
  }
  return number * high + (number * (low >> 32) >> 32);
}

/* Returns the quarter turns nearest to x >= 0, modulo 4, and stores the rest in radians; for x of 2**128 and more, NaN. */
static int quarters(double x, double *rest) {
  if (x < 1e5) { /* so that n times the first part of pi/2 is exact */
    const double n = nearbyint(x / HALF_PI);
    *rest = x - n * 1.57079632673412561417 - n * 6.07710050650619224932e-11;
    return (int)((int64_t)n & 3);
  }
  *rest = not_a_number();
  if (x >= 0x1p128) return 0;
  const uint64_t number = (bits_of(x) & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  const int exponent = (int)(bits_of(x) >> 52) - 1023 - 52;
  const uint64_t sum = turns(number >> 32, exponent + 32) + turns(number & 0xFFFFFFFFu, exponent), rounded = sum + (UINT64_C(1) << 61);
  *rest = (double)(int64_t)(sum - (rounded & UINT64_C(3) << 62)) * 0x1p-62 * HALF_PI;
  return (int)(rounded >> 62);
}

static double sine_at(double x, int quarter) {
  if (!(magnitude(x) < infinity())) return not_a_number();
  double rest, sum = 1;
  quarter += quarters(magnitude(x), &rest);
  const double square = rest * rest;
  const int odd = quarter & 1;
  for (int i = 18 - odd; i > 0; i -= 2) sum = 1 - sum * square / (i * (i + 1));
  return (odd ? sum : rest * sum) * (quarter & 2 ? -1 : 1);
}
SHARED double sin(double x) { return x == 0 ? x : with_sign(1, x) * sine_at(x, 0); }
SHARED double cos(double x) { return sine_at(x, 1); }

SHARED double atan(double x) {
  double size = magnitude(x), base = 0;
  const int large = size > 1;
  if (large) size = 1 / size;
  if (size > 0.267949192431122706) { /* tan(pi / 12) */
    base = HALF_PI / 3;
    size = (size * 1.73205080756887729 - 1) / (size + 1.73205080756887729);
  }
  double sum = 0;
  for (int i = 21; i > 0; i -= 2) sum = 1.0 / i - size * size * sum;
  const double angle = base + size * sum;
  return with_sign(large ? HALF_PI - angle : angle, x);
}
SHARED double asin(double x) {
  const double size = magnitude(x);
  return size > 1 ? not_a_number() : size == 1 ? x * HALF_PI : atan(x / sqrt((1 - x) * (1 + x)));
}
SHARED double acos(double x) {
  if (magnitude(x) > 1) return not_a_number();
  return x > 0.5 ? 2 * asin(sqrt(0.5 * (1 - x))) : HALF_PI - asin(x);
}

/* ---- of floats ---- */

#define OF_FLOAT(name) SHARED float name##f(float x) { return (float)name((double)x); }
OF_FLOAT(exp)
OF_FLOAT(log)
OF_FLOAT(sin)
OF_FLOAT(cos)
OF_FLOAT(atan)
OF_FLOAT(asin)
OF_FLOAT(acos)
OF_FLOAT(sinh)
OF_FLOAT(cosh)
OF_FLOAT(asinh)
OF_FLOAT(acosh)
OF_FLOAT(sqrt)
OF_FLOAT(tanh)
OF_FLOAT(erf)
SHARED float powf(float x, float y) { return (float)pow((double)x, (double)y); }
SHARED float fmodf(float x, float y) { return (float)fmod((double)x, (double)y); }

/* ---- integers by floats ---- */

/* Returns x / 2**n, rounded to even, for n from 0 to 63. */
static uint64_t rounded(uint64_t x, int n) {
  if (n == 0) return x;
  const uint64_t rest = x & ((UINT64_C(1) << n) - 1), half = UINT64_C(1) << (n - 1), whole = x >> n;
  return whole + (rest > half || (rest == half && (whole & 1)));
}

/* Returns x rounded to 24 bits, as a float has them. */
static uint64_t as_float(uint64_t x) {
  int n = 0;
  while (x >> (24 + n)) n++;
  return rounded(x, n) << n;
}

/* Returns the same as the next function, by both steps. */
__attribute__((noinline)) static int32_t product_in_steps(uint32_t number, uint32_t factor, int n) {
  if (n >= 96 || number == 0 || factor == 0) return 0;
  uint64_t product = as_float(as_float(number) * factor); /* at most 2**56 */
  if (n > 0) product = n < 64 ? rounded(product, n) : 0;
  else product = n < -7 || product >> (56 + n) ? UINT64_MAX : product << -n;
  return (int32_t)(product > 0x7FFFFFFF ? 0x7FFFFFFF : product);
}

/* Returns rintf((float)x * y) in integers, y by its bits, for cores without floating point: each step rounds as floats do.
 *
 * A float's product has 24 bits of 48. Rounding it first makes no difference unless the exact one is nearer to the middle of two
 * whole numbers than 2**23: then both steps are taken. Products are shifted by 8, so that their high words have most whole numbers. */
SHARED int32_t passfit_product(int32_t x, uint32_t y) {
  const int raised = (int)(y >> 23 & 255), n = 150 - (raised ? raised : 1); /* the product is number * factor / 2**n */
  const uint32_t factor = (y & 0x7FFFFF) | (raised ? 0x800000U : 0U), number = x < 0 ? 0U - (uint32_t)x : (uint32_t)x;
  int32_t whole;
  if (number >> 24 == 0 && n > 24 && n < 56) {
    const uint64_t product = (uint64_t)(number << 8) * factor;
    const uint32_t low = (uint32_t)product, high = (uint32_t)(product >> 32) + (UINT32_C(1) << (n - 25));
    const uint32_t rest = high << (56 - n) | low >> (n - 24), near = (UINT32_C(1) << (55 - n)) + 1;
    whole = rest + near > 2 * near ? (int32_t)(high >> (n - 24)) : product_in_steps(number, factor, n);
  } else {
    whole = product_in_steps(number, factor, n);
  }
  return (x ^ (int32_t)y) < 0 ? -whole : whole;
}
