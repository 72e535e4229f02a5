// Functions with scratch that the link does not know, for the GPU and the host. Each frame has 400 bytes and more.
DEVICE int again(int n) {
  volatile int a[100];
  for (int i = 0; i < 100; i++) a[i] = n * i;
  return n < 1 ? a[n + 7] : again(n - 1) * 3 + a[n & 63];
}
DEVICE int hidden(int n) {
  volatile int a[300];
  for (int i = 0; i < 300; i++) a[i] = n * i + 1;
  return a[n + 250];
}
// The program may write other functions to the table: which ones are called is not known.
typedef int (*Function)(int);
VARIABLE Function table[2] = {again, hidden};
DEVICE int pointed(int n) {
  volatile int a[100];
  for (int i = 0; i < 100; i++) a[i] = n * i + 2;
  return table[n & 1](n) + a[n & 63];
}
