#ifndef CPLUS_H
#define CPLUS_H	/* DEF macro CPLUS_H */
namespace box {	// DEF namespace box

class Closed;
template <typename T, int N = 3>
class Box final : public Base<T>, private Other {	// DEF class Box
 public:
  Box() : a_{1}, b_(2) {}	// DEF function Box
  explicit Box(int a, std::vector<int> b = {}) noexcept(true)	// DEF function Box
      : a_(a),
        b_{b.size()} {
  }
  virtual ~Box() { done(); }	// DEF function ~Box
  int size() const { return a_; }	// DEF function size
  int declared() const;
  bool operator==(const Box& other) const { return true; }	// DEF function operator==
  void operator()() {}	// DEF function operator()
  operator bool() const { return true; }	// DEF function operator bool
  using Value = T;	// DEF alias Value
  enum class Kind : unsigned { One, Two };	// DEF enum Kind

 private:
  struct Node {	// DEF struct Node
    Node* next{nullptr};
  };
  int a_ = 0, b_{2};
  std::function<int(int)> f_ = [](int x) { return x; };
};

}  // namespace box
#endif
