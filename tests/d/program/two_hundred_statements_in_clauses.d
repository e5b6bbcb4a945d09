/* SPDX-License-Identifier: Apache-2.0 */
/* Many clauses of one probe. */
BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; }
BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; }
BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; }
BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; } BEGIN { n++; }
BEGIN
{
	printf("%d\n", n);
	exit(0);
}
/* output:
24

*/
