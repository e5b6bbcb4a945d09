
${now}
{
	trunc(@connections, ${take});
	printf("${page}%-16s %-10s %-39s %5s %10s\n", "PROGRAM", "", "PEER", "PORT", "TIMES");
	printa("%-16s %-10s %-39s %5d %@10d\n", @connections);
	printf("\n%-16s %-39s %5s %14s %14s\n", "PROGRAM", "PEER", "PORT", "SENT", "RECEIVED");
	printa("%-16s %-39s %5d %@14d %@14d\n", @sent, @received);
	trunc(@connections);
	trunc(@sent);
	trunc(@received);
}
