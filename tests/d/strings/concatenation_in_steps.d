/* SPDX-License-Identifier: Apache-2.0 */
/* A string that grows by steps. */
string s;
int i;
tick-1ms
/i < 5/
{
	s = i == 0 ? "0" : strjoin(s, lltostr(i));
	i++;
}
tick-1ms
/i == 5/
{
	printf("%s %d\n", s, strlen(s));
	exit(0);
}
/* output:
01234 5

*/
