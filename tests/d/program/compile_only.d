/* SPDX-License-Identifier: Apache-2.0 */
/* -e compiles and does not trace. */
/* flags: -q -e */
BEGIN
{
	printf("never\n");
	exit(3);
}
