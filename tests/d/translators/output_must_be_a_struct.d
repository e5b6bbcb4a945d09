/* SPDX-License-Identifier: Apache-2.0 */
/* A translator makes structs. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_SOU] */
translator int < long V > {
	a = V;
};
BEGIN
{
	exit(0);
}
