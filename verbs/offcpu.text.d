
${now}
{
	trunc(@waits, ${take});
	printf("${page}Waits by program and stack, with the nanoseconds that they took:\n");
	printa("%s%k%@16d ns\n", @waits);
	trunc(@waits);
}
