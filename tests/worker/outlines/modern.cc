#include "cplus.h"
namespace a::b {	// DEF namespace a::b
namespace {

constexpr auto kText = R"(a { brace, "quotes" and /* )";
const int kLarge = 1'000'000;

template <class T>
auto Box<T>::more(int a) -> std::vector<T> {	// DEF function Box<T>::more
  auto f = [&](int b) { return a + b; };
  struct Visitor {	// DEF struct Visitor
    void visit(int) {}	// DEF function visit
  };
  return {};
}

std::ostream& operator<<(std::ostream& out, const Box<int>& box) {	// DEF function operator<<
  return out;
}

}  // namespace

Outer::Inner::Inner(int a) : a_(a), b_{a} {	// DEF function Outer::Inner::Inner
}

Outer::~Outer() = default;

TEST_CASE("a name of letters") {
  CHECK(true);
}

template <typename T>
concept Sized = requires(T a) { a.size(); };	// DEF concept Sized

static std::map<std::string, int> names = {
    {"one", 1},
};

int last(int a)	// DEF function last
try {
  return a;
} catch (...) {
}
}  // namespace a::b
