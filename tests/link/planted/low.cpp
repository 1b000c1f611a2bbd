// A planted fault: code of a low room that calls up. link.finds_planted_fault must see it.
int planted_high(int value);

int planted_low(int value);

int planted_low(int value) {
  return planted_high(value) + 1;
}
