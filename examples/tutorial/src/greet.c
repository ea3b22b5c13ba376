#include <stdio.h>
#include <string.h>

void greet(const char *name)
{
	char text[16];

	strcpy(text, name);
	printf("Hello, %s\n", text);
}
