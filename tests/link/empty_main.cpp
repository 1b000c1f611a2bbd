// The linker is the test; running the program only shows that it loads.
int main() {
  return 0;
}
