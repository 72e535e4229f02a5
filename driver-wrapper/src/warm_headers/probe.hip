// Compiled with and without a precompiled header: the objects must be equal.
namespace hotswap_probe {

struct Shape {
  __attribute__((device)) virtual float area(float x) const = 0;
  __attribute__((device)) virtual float twice(float x) const { return 2 * area(x); }
  float side = 1;
};

struct Square final : Shape {
  __attribute__((device)) float area(float x) const override { return side * side + x; }
};

struct Circle final : Shape {
  __attribute__((device)) float area(float x) const override { return 3.14f * side * x; }
};

template <typename T> __attribute__((device, noinline)) T scaled(T value, int by) {
  static constexpr T factors[] = {1, 2, 3, 5};
  return value * factors[by & 3];
}

__attribute__((device)) inline __attribute__((noinline)) int later(int x);

__attribute__((device, used)) float measured(const Shape *shapes[2], int which, float x) {
  Square square;
  Circle circle;
  const Shape *own[2] = {&square, &circle};
  const Shape *shape = which < 2 ? shapes[which] : own[which & 1];
  return shape->twice(x) + scaled(x, which) + scaled(which, later(which));
}

__attribute__((device)) inline int later(int x) { return scaled<long>(x, x) & 7; }

struct HostOnly {
  HostOnly();
  HostOnly(const HostOnly &) = delete;
  virtual ~HostOnly() = 0;
  virtual int value() const { return 1; }
};

__attribute__((used)) int on_the_host(const HostOnly &one, int x) {
  static const int seen = x + 1;
  auto add = [&](int y) { return one.value() + y + seen; };
  return add(x) * add(2 * x);
}

} // namespace hotswap_probe
