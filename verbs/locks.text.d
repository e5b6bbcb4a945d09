
${now}
{
	trunc(@nanoseconds, ${take});
	printf("${page}Waits for locks by program, owner, lock and stack, with their nanoseconds:\n");
	printa("%s, held by %d, %A%k%@16d ns\n", @nanoseconds);
	trunc(@nanoseconds);
	trunc(@waits);
}
