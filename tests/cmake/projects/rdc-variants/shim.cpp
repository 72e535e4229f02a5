// The host function of a shared library.
int count_right();

int count_in_library() { return count_right(); }
