/* SPDX-License-Identifier: Apache-2.0 */
/* A typedef is another name of its type. */
typedef unsigned short port_number_t;
port_number_t p;
BEGIN
{
	p = 65536 + 80;
	printf("%d %d\n", p, sizeof (port_number_t));
	exit(0);
}
/* output:
80 2

*/
