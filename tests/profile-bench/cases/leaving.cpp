// A global object whose destructor launches a kernel of another object: after the program's exit handlers.
extern "C" void launch_saxpy(void);

static struct Last {
  ~Last() { launch_saxpy(); }
} last;
