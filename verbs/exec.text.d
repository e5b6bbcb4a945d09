
BEGIN
{
	printf("%13s %-6s %7s %7s %12s %10s  %s\n", "TIME", "", "PARENT", "PROCESS", "LIFE", "END",
	    "COMMAND");
}
